"""Rows of a Parquet checkpoint as actions with the log lines that they were.

The columns of an action have the names and types of its JSON fields (PROTOCOL.md, "Checkpoint
Schema"), so any struct becomes its JSON object: absent where null. Columns nobody here knows
come along. The exception are the statistics, which may be there as a struct of typed values
only, and have to become the text that they are in JSON.
"""

from typing import Any, cast

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from tidegate_protocol.base import strict_json
from tidegate_protocol.features.known import READER_FEATURES_VERSION, WRITER_FEATURES_VERSION
from tidegate_protocol.log.actions import (
    Action,
    Add,
    DomainMetadata,
    Metadata,
    Protocol,
    Remove,
    Txn,
    UnknownAction,
)

FILES = "add"
STATS = "stats"
PARSED_STATS = "stats_parsed"
_STRUCTS: dict[str, type[msgspec.Struct]] = {
    FILES: Add,
    "remove": Remove,
    "metaData": Metadata,
    "protocol": Protocol,
    "txn": Txn,
    "domainMetadata": DomainMetadata,
}
KINDS = (*_STRUCTS, "sidecar")
"""The columns that are read. A sidecar becomes an `UnknownAction`, as it is in JSON."""
OF_INT96 = "ms"
"""The unit that Parquet's INT96 is read in. Spark's instants are in that form by default; nobody
has another timestamp of milliseconds without a zone."""
PASSED_OVER = ("checkpointMetadata",)
"""Columns of a checkpoint that say nothing about the snapshot."""

_JSON = msgspec.json.Encoder(decimal_format="number")

_SHORT_BYTES = min(strict_json.MAX_CONTAINERS, strict_json.MAX_VALUES)

_Body = dict[str, Any]


class InvalidRow(ValueError):
    """A row is not the action that its column says; the message says why."""


def actions_of(kind: str, present: pa.StructArray) -> list[Action]:
    """The actions in one column of a batch, of the rows that have one. Raises `InvalidRow`."""
    struct = _STRUCTS.get(kind)
    actions: list[Action] = []
    for body in _bodies(kind, present):
        raw = _JSON.encode({kind: body})
        _check_line(kind, raw)
        if struct is None:
            actions.append(UnknownAction(kind=kind, raw=raw))
            continue
        try:
            action = msgspec.convert(body, struct)
        except msgspec.ValidationError as error:
            raise InvalidRow(f"in action {kind!r}: {error}") from None
        msgspec.structs.force_setattr(action, "raw", raw)
        actions.append(cast(Action, action))
    return actions


def _check_line(kind: str, raw: bytes) -> None:
    """Raise `InvalidRow` for what is refused in a line of a commit file: rows are kept as lines,
    and read again as those. A short line without NUL and without depth is not read for it."""
    if (
        len(raw) > _SHORT_BYTES
        or b"\\u0000" in raw
        or strict_json.containers(raw) > strict_json.MAX_DEPTH
    ):
        try:
            strict_json.decode(raw)
        except strict_json.InvalidJson as error:
            raise InvalidRow(f"in action {kind!r}: {error}") from None


def _bodies(kind: str, present: pa.StructArray) -> list[_Body]:
    bodies = _objects(present, leave_out=PARSED_STATS)
    if kind in (FILES, "remove"):
        for body in bodies:
            body.setdefault("dataChange", False)
    if kind == FILES:
        _add_stats(bodies, present)
    elif kind == "protocol":
        for body in bodies:
            _without_empty_features(body)
    elif kind == "metaData":
        for body in bodies:
            _without_null_properties(body)
    return bodies


def _without_null_properties(body: _Body) -> None:
    """A null is absent, as in `lines`."""
    format_ = body.get("format") or {}
    for holder, field in ((body, "configuration"), (format_, "options")):
        if isinstance(texts := holder.get(field), dict):
            holder[field] = {name: text for name, text in texts.items() if text is not None}


def _without_empty_features(body: _Body) -> None:
    """Some writers leave an empty list where there is none: the two are one in Parquet's eyes,
    and in JSON they are not."""
    for field, version, first in (
        ("readerFeatures", "minReaderVersion", READER_FEATURES_VERSION),
        ("writerFeatures", "minWriterVersion", WRITER_FEATURES_VERSION),
    ):
        if body.get(field) == [] and body.get(version, 0) < first:
            del body[field]


def _add_stats(bodies: list[_Body], present: pa.StructArray) -> None:
    index = present.type.get_field_index(PARSED_STATS)
    if index < 0:
        return
    parsed = present.field(index)
    for body, stats in zip(bodies, _statistics(parsed), strict=True):
        if stats is not None and body.get(STATS) is None:
            body[STATS] = _JSON.encode(stats).decode()


def _objects(structs: pa.StructArray, *, leave_out: str | None = None) -> list[_Body]:
    """Struct rows as objects; those that are null count as empty here."""
    objects: list[_Body] = [{} for _ in range(len(structs))]
    for index in range(structs.type.num_fields):
        name = structs.type.field(index).name
        column = structs.field(index)
        if name == leave_out or column.null_count == len(column):
            continue
        for body, value in zip(objects, _values(column), strict=True):
            if value is not None:
                body[name] = value
    return objects


def _values(column: pa.Array) -> list[Any]:
    if pa.types.is_struct(column.type):
        struct = cast(pa.StructArray, column)
        valid = struct.is_valid().to_pylist()
        rows = zip(valid, _objects(struct), strict=True)
        return [body if is_there else None for is_there, body in rows]
    try:
        return list(column.to_pylist(maps_as_pydicts="strict"))
    except KeyError:
        raise InvalidRow("a map has one key twice") from None


def _statistics(column: pa.Array) -> list[Any]:
    """Typed statistics as values that JSON has, formatted as Delta does (DataSkippingReader)."""
    kind = column.type
    if pa.types.is_struct(kind):
        return _statistics_object(cast(pa.StructArray, column))
    if pa.types.is_timestamp(kind):
        # Down to milliseconds, also the maximum: readers know that it may be one higher.
        in_utc = pc.floor_temporal(column, unit="millisecond").cast(pa.timestamp("ms"))
        zone = "" if kind.tz is None and kind.unit != OF_INT96 else "Z"
        return _texts(pc.strftime(in_utc, f"%Y-%m-%dT%H:%M:%S{zone}"))
    if pa.types.is_date(kind):
        return _texts(pc.strftime(column, "%Y-%m-%d"))
    if pa.types.is_floating(kind):
        finite = pc.is_finite(column)
        return _texts(pc.if_else(finite, column, pa.scalar(None, kind)))
    if pa.types.is_binary(kind) or pa.types.is_nested(kind):
        return [None] * len(column)
    return _texts(column)


def _statistics_object(structs: pa.StructArray) -> list[_Body | None]:
    objects: list[_Body | None] = [
        {} if is_there else None for is_there in structs.is_valid().to_pylist()
    ]
    for index in range(structs.type.num_fields):
        name = structs.type.field(index).name
        for body, value in zip(objects, _statistics(structs.field(index)), strict=True):
            if body is not None and value is not None:
                body[name] = value
    return objects


def _texts(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    return list(column.to_pylist())
