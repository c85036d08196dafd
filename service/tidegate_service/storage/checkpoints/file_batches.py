"""Log lines of files as the columns of a checkpoint.

Arrow parses a page of them by itself, without Python's interpreter. What it has no place for, such
as tags, or reads otherwise than Delta does, has the page read line by line instead.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.json as pj

from tidegate_protocol.checkpoint.columns import FileColumns
from tidegate_service.core.sharing.pools import Rests
from tidegate_service.storage.checkpoints.arrow_types import (
    ADD_FIELDS,
    REMOVE,
    TEXTS,
    VECTOR,
    add_type,
    partitions_type,
    statistics_type,
)
from tidegate_service.storage.checkpoints.parsed import parsed_partitions, parsed_statistics
from tidegate_service.storage.checkpoints.portions import (
    ROWS,
    of_lines,
    of_objects,
    rows_at_once,
    width_of,
)

_LINE = msgspec.json.Decoder(dict[str, dict[str, Any]])
_NEEDS_LINES = (b'"tags"', rb"\u")
"""Tags are not read at once. A key may have escapes."""
_PARSED_BY_ARROW = (
    "path",
    "size",
    "modificationTime",
    "baseRowId",
    "defaultRowCommitVersion",
    "clusteringProvider",
    "stats",
)


class _Found(NamedTuple):
    """Columns by their names, and the texts of partition columns that are wanted typed."""

    columns: dict[str, pa.Array]
    texts: Mapping[str, pa.Array]


class FileBatches:
    """Makes the columns `add` and `remove` of the files of one table."""

    def __init__(self, columns: FileColumns) -> None:
        self._columns = columns
        self.add_type = add_type(columns)
        self.remove_type = REMOVE
        self._line_schema = _line_schema(columns)
        self._partitions = partitions_type(columns)
        self._statistics = statistics_type(columns) if columns.parsed else None

        names = [name for name, _ in columns.partitions or ()]
        # The map of a row has all of their names, however long these are.
        keys = sum(2 + len(name) // 8 for name in names)
        typed = [self._statistics, self._partitions if columns.parsed else None]
        self._width = keys + sum(width_of(one) for one in typed if one is not None)

    def adds(self, lines: bytes, count: int) -> Iterator[pa.StructArray]:
        """Of so many log lines, one behind the other; some rows at a time."""
        rests = Rests()
        for some, number in of_lines(lines, count, rows_at_once(self._width)):
            yield self._adds(some, number, rests)

    def removes(self, tombstones: Sequence[tuple[int, bytes]]) -> Iterator[pa.StructArray]:
        """Of files with when they were removed, by the log lines of their adds or removes. What is
        known of an add is all that a remove with `extendedFileMetadata` tells."""
        rests = Rests()
        rows = rows_at_once(self._width)
        for start in range(0, len(tombstones), rows):
            some = tombstones[start : start + rows]
            arrays = []
            for few in of_objects(some, lambda one: len(one[1]), ROWS):
                arrays.append(pa.array([_remove(ms, line) for ms, line in few], self.remove_type))
                rests()
            yield pa.concat_arrays(arrays)

    def _adds(self, lines: bytes, count: int, rests: Rests) -> pa.StructArray:
        found, texts = self._at_once(lines, count) or self._line_by_line(lines, rests)
        found["dataChange"] = _repeated(pa.scalar(False), count)
        if self._statistics is not None:
            found["stats_parsed"] = parsed_statistics(
                found["stats"], self._statistics, self._columns, rests
            )
            if self._partitions is not None:
                found["partitionValues_parsed"] = parsed_partitions(
                    texts, self._partitions, self._columns
                )
        fields = list(self.add_type)
        return pa.StructArray.from_arrays([found[field.name] for field in fields], fields=fields)

    def _at_once(self, lines: bytes, count: int) -> _Found | None:
        """None where the lines have to be read one by one."""
        if self._line_schema is None or any(text in lines for text in _NEEDS_LINES):
            return None
        try:
            table = pj.read_json(
                pa.BufferReader(lines),
                read_options=pj.ReadOptions(use_threads=False, block_size=len(lines) + 1),
                parse_options=pj.ParseOptions(
                    explicit_schema=self._line_schema, unexpected_field_behavior="ignore"
                ),
            )
        except pa.ArrowInvalid:
            return None
        add = table.column("add").combine_chunks()
        if len(add) != count or add.null_count:
            return None
        found = {name: _field(add, name) for name in _PARSED_BY_ARROW}
        found["deletionVector"] = _field(add, "deletionVector")
        found["tags"] = pa.nulls(count, TEXTS)
        names = [name for name, _ in self._columns.partitions or ()]
        values = _field(add, "partitionValues") if names else None
        found["partitionValues"] = _map_of(names, values, count)
        return _Found(found, {name: _field(values, name) for name in names})

    def _line_by_line(self, lines: bytes, rests: Rests) -> _Found:
        wanted = () if self._statistics is None else self._partitions or ()
        names = [field.name for field in wanted]
        pieces: dict[str, list[pa.Array]] = {name: [] for name in ADD_FIELDS}
        texts: dict[str, list[pa.Array]] = {name: [] for name in names}
        for some in of_objects(lines.split(b"\n"), len, ROWS):
            bodies = [_LINE.decode(line)["add"] for line in some]
            for name, column in _read_line_by_line(bodies).items():
                pieces[name].append(column)
            for name in names:
                values = [(body.get("partitionValues") or {}).get(name) for body in bodies]
                texts[name].append(pa.array(values, pa.string()))
            rests()
        return _Found(_together(pieces), _together(texts))


def _line_schema(columns: FileColumns) -> pa.Schema | None:
    """Of the log lines; None where the names of partition values are not known beforehand."""
    if columns.partitions is None:
        return None
    fields = [(name, ADD_FIELDS[name]) for name in _PARSED_BY_ARROW]
    fields.append(("deletionVector", VECTOR))
    if columns.partitions:
        values = pa.struct([(name, pa.string()) for name, _ in columns.partitions])
        fields.append(("partitionValues", values))
    return pa.schema([("add", pa.struct(fields))])


def _field(struct: pa.StructArray, name: str) -> pa.Array:
    return struct.field(struct.type.get_field_index(name))


def _map_of(names: Sequence[str], values: pa.StructArray | None, count: int) -> pa.MapArray:
    """A map of the same keys in each row."""
    width = len(names)
    offsets = pa.array(
        range(0, count * width + 1, width) if width else [0] * (count + 1), pa.int32()
    )
    keys = pa.array(list(names) * count, pa.string())
    if values is None:
        return pa.MapArray.from_arrays(offsets, keys, pa.array([], pa.string()))
    # Columns one behind the other become rows.
    order = pa.array(
        [place * count + row for row in range(count) for place in range(width)], pa.int32()
    )
    items = pa.concat_arrays([_field(values, name) for name in names]).take(order)
    return pa.MapArray.from_arrays(offsets, keys, items)


def _together(pieces: Mapping[str, Sequence[pa.Array]]) -> dict[str, pa.Array]:
    return {name: pa.concat_arrays(arrays) for name, arrays in pieces.items()}


def _repeated(value: pa.Scalar, count: int) -> pa.Array:
    return pa.repeat(value, count)


def _read_line_by_line(bodies: Sequence[dict[str, Any]]) -> dict[str, pa.Array]:
    readers: dict[str, Callable[[Any], Any]] = {"partitionValues": _items, "tags": _items}
    return {
        name: pa.array(
            [readers[name](body.get(name)) for body in bodies]
            if name in readers
            else [body.get(name) for body in bodies],
            data_type,
        )
        for name, data_type in ADD_FIELDS.items()
    }


def _items(texts: dict[str, str | None] | None) -> list[tuple[str, str | None]] | None:
    return None if texts is None else list(texts.items())


def _remove(removed_ms: int, line: bytes) -> dict[str, Any]:
    ((kind, body),) = _LINE.decode(line).items()
    is_extended = kind == "add" or body.get("extendedFileMetadata")
    return {
        **{name: body.get(name) for name in ("path", "size", "deletionVector")},
        "deletionTimestamp": removed_ms,
        "dataChange": False,
        "extendedFileMetadata": is_extended,
        "partitionValues": _items(body.get("partitionValues")),
        "tags": _items(body.get("tags")),
        "baseRowId": body.get("baseRowId"),
        "defaultRowCommitVersion": body.get("defaultRowCommitVersion"),
    }
