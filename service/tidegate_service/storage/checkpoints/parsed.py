"""Statistics and partition values as typed columns (`stats_parsed`, `partitionValues_parsed`).

Arrow parses the statistics of a page by itself. What it cannot read, such as a NaN in quotes or a
column that writers had of another type before, is read a few files at a time, and
what is no value of its column's type is null there, as if it were not known.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from tidegate_protocol.checkpoint.columns import FileColumns
from tidegate_protocol.schema.data_types import DataType
from tidegate_protocol.schema.partition_values import is_local, parse_value
from tidegate_protocol.schema.values import InvalidValue, Value
from tidegate_service.core.sharing.pools import Rests
from tidegate_service.storage.checkpoints.portions import (
    CELLS_OF_OBJECTS,
    ROWS,
    rows_at_once,
    width_of,
)

_WITHOUT_ZONE = re.compile(rb'\d\d:\d\d(?::\d\d(?:\.\d*)?)?"')
_STATS = msgspec.json.Decoder(dict[str, Any], float_hook=str)


def parsed_partitions(
    values: Mapping[str, pa.StringArray], struct: pa.StructType, columns: FileColumns
) -> pa.StructArray:
    """Of the texts of each column. Few different ones are in a page, and each is parsed once."""
    types = dict(columns.partitions or ())
    arrays = []
    for field in struct:
        texts = values[field.name].dictionary_encode()
        parsed = [
            _partition_value(types[field.name], text) for text in texts.dictionary.to_pylist()
        ]
        arrays.append(pa.array(parsed, field.type).take(texts.indices))
    return pa.StructArray.from_arrays(arrays, fields=list(struct))


def _partition_value(data_type: DataType, text: str) -> Value | None:
    try:
        return parse_value(data_type, text)
    except InvalidValue:
        return None


def parsed_statistics(
    stats: pa.StringArray, struct: pa.StructType, columns: FileColumns, rests: Rests
) -> pa.StructArray:
    """Null where a file has none."""
    there = stats.is_valid()
    found = _at_once(stats, struct)
    if found is None:
        types = {column.path: column.type for column in columns.statistics}
        most = min(ROWS, rows_at_once(width_of(struct), cells=CELLS_OF_OBJECTS))
        arrays = []
        for start in range(0, len(stats), most):
            some = stats.slice(start, most).to_pylist()
            arrays.append(pa.array([_row(text, struct, types) for text in some], struct))
            rests()
        return pa.concat_arrays(arrays)
    return pc.if_else(there, found, pa.scalar(None, struct))


def _at_once(stats: pa.StringArray, struct: pa.StructType) -> pa.StructArray | None:
    """None where Arrow reads one of them otherwise, or not at all."""
    lines = b"\n".join([text.encode() if text else b"{}" for text in stats.to_pylist()])
    if _has_instants(struct) and _WITHOUT_ZONE.search(lines):
        return None
    as_text = _dates_as_texts(struct)
    try:
        table = pj.read_json(
            pa.BufferReader(lines),
            read_options=pj.ReadOptions(use_threads=False, block_size=len(lines) + 1),
            parse_options=pj.ParseOptions(
                explicit_schema=pa.schema(list(as_text)), unexpected_field_behavior="ignore"
            ),
        )
        if len(table) != len(stats):
            return None
        columns = [column.combine_chunks() for column in table.columns]
        return _cast(pa.StructArray.from_arrays(columns, fields=list(as_text)), struct)
    except pa.ArrowInvalid:
        return None


def _has_instants(data_type: pa.DataType) -> bool:
    if pa.types.is_struct(data_type):
        return any(_has_instants(field.type) for field in data_type)
    return pa.types.is_timestamp(data_type) and data_type.tz is not None


def _dates_as_texts(data_type: pa.DataType) -> pa.DataType:
    """Arrow's JSON has no dates."""
    if pa.types.is_struct(data_type):
        return pa.struct([(field.name, _dates_as_texts(field.type)) for field in data_type])
    return pa.string() if pa.types.is_date(data_type) else data_type


def _cast(column: pa.Array, data_type: pa.DataType) -> pa.Array:
    if column.type == data_type:
        return column
    if pa.types.is_struct(data_type):
        arrays = [_cast(column.field(place), field.type) for place, field in enumerate(data_type)]
        return pa.StructArray.from_arrays(
            arrays, fields=list(data_type), mask=pc.invert(column.is_valid())
        )
    return pc.cast(column, data_type)


def _row(
    text: str | None, struct: pa.StructType, types: Mapping[tuple[str, ...], DataType]
) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        stats = _STATS.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    row: dict[str, Any] = {}
    for field in struct:
        value = stats.get(field.name)
        if field.name in ("minValues", "maxValues"):
            row[field.name] = _values(value, field.type, types, ())
        elif field.name == "nullCount":
            row[field.name] = _counts(value, field.type)
        elif field.name == "numRecords":
            row[field.name] = _count(value)
        else:
            row[field.name] = value if isinstance(value, bool) else None
    return row


def _values(
    value: object,
    struct: pa.StructType,
    types: Mapping[tuple[str, ...], DataType],
    path: tuple[str, ...],
) -> dict[str, Any] | None:
    if not isinstance(value, dict):
        return None
    found: dict[str, Any] = {}
    for field in struct:
        inside, here = value.get(field.name), (*path, field.name)
        if pa.types.is_struct(field.type):
            found[field.name] = _values(inside, field.type, types, here)
        elif inside is not None and not isinstance(inside, dict | list):
            found[field.name] = _value(types[here], inside)
    return found


def _value(data_type: DataType, found: object) -> Value | None:
    """JSON's values as partition values are written, which are read as strictly. What instant a
    text without a zone means, nobody knows but its writer."""
    text = found if isinstance(found, str) else msgspec.json.encode(found).decode()
    if is_local(data_type, text):
        return None
    try:
        return parse_value(data_type, text)
    except InvalidValue:
        return None


def _counts(value: object, data_type: pa.DataType) -> object:
    if not pa.types.is_struct(data_type):
        return _count(value)
    if not isinstance(value, dict):
        return None
    return {field.name: _counts(value.get(field.name), field.type) for field in data_type}


def _count(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63:
        return value
    return None
