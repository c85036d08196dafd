"""The statistics of a new file (PROTOCOL.md, "Per-file Statistics")."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from math import isfinite
from typing import Any

import msgspec

from tidegate_protocol.features.properties import TableProperties
from tidegate_protocol.schema.data_types import DataType, Leaf, StructType
from tidegate_protocol.schema.partition_values import serialize_value
from tidegate_protocol.schema.values import Value

STRING_PREFIX_LENGTH = 32
"""Delta's default for the length of strings in minima and maxima."""

_LAST_ASCII = "\x7f"
_LAST_CHARACTER = "\U0010ffff"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnStatistics:
    """What is to be written of one leaf column; None for what is not known.

    Where NaN is among the values, it is the maximum, as Spark orders them.
    """

    type: DataType
    minimum: Value | None = None
    maximum: Value | None = None
    null_count: int | None = None


def statistics_columns(
    schema: StructType,
    properties: TableProperties,
    partition_columns: Sequence[str],
    *,
    clustering: Collection[tuple[str, ...]] = (),
) -> tuple[Leaf, ...]:
    """The leaf columns that a writer collects statistics of, in the schema's order: those that
    `delta.dataSkippingStatsColumns` names (a struct stands for all that it holds), else the
    first `delta.dataSkippingNumIndexedCols`; and whatever those say, the columns at the physical
    paths of `clustering`. Partition columns are none of them."""
    partitioning = {name.lower() for name in partition_columns}
    leaves = [leaf for leaf in schema.leaves() if leaf.path[0].lower() not in partitioning]
    if properties.stats_columns is None:
        count = properties.num_indexed_columns
        asked = set(range(len(leaves) if count < 0 else count))
    else:
        wanted = {tuple(name.lower() for name in path) for path in properties.stats_columns}
        asked = {i for i, leaf in enumerate(leaves) if _prefixes(leaf.path) & wanted}
    return tuple(
        leaf for i, leaf in enumerate(leaves) if i in asked or leaf.physical_path in clustering
    )


def _prefixes(path: tuple[str, ...]) -> set[tuple[str, ...]]:
    lower = tuple(name.lower() for name in path)
    return {lower[:length] for length in range(1, len(lower) + 1)}


def build_statistics(
    num_records: int,
    columns: Mapping[tuple[str, ...], ColumnStatistics],
    *,
    tight_bounds: bool | None = None,
    string_prefix_length: int = STRING_PREFIX_LENGTH,
) -> str:
    """The `stats` text of an add, from its columns by physical path.

    Minima and maxima are written of the types that Delta does so for, strings cut to
    `string_prefix_length` and timestamps to milliseconds; `tightBounds` where it is given, which
    is for tables with deletion vectors.
    """
    minima: dict[str, Any] = {}
    maxima: dict[str, Any] = {}
    null_counts: dict[str, Any] = {}
    for path, column in columns.items():
        if column.null_count is not None:
            _put(null_counts, path, column.null_count)
        minimum, maximum = column.minimum, column.maximum
        if isinstance(minimum, str):
            minimum = truncate_minimum(minimum, string_prefix_length)
        if isinstance(maximum, str):
            maximum = truncate_maximum(maximum, string_prefix_length)
        for tree, bound in ((minima, minimum), (maxima, maximum)):
            value = None if bound is None else _json(column.type, bound)
            if value is not None:
                _put(tree, path, value)
    stats: dict[str, Any] = {
        "numRecords": num_records,
        "minValues": minima,
        "maxValues": maxima,
        "nullCount": null_counts,
    }
    if tight_bounds is not None:
        stats["tightBounds"] = tight_bounds
    return msgspec.json.encode(stats).decode()


def truncate_minimum(text: str, length: int = STRING_PREFIX_LENGTH) -> str:
    """At most `length` characters that are not above the text."""
    return text[:length]


def truncate_maximum(text: str, length: int = STRING_PREFIX_LENGTH) -> str | None:
    """A short text that is not below the given one, as Delta makes it: a prefix with a high
    character at its end. Lengths count UTF-16 units here, as Delta's do; a prefix is drawn out,
    to twice the length at most, while it ends before the last of all characters. None where that
    does not do."""
    units = [2 if character > "\uffff" else 1 for character in text]
    if sum(units) <= length:
        return text
    if length <= 0:
        return None
    end = used = 0
    while used < length:
        used += units[end]
        end += 1
    while used <= 2 * length:
        if end >= len(text):
            return text
        if text[end] != _LAST_CHARACTER:
            return text[:end] + (_LAST_ASCII if text[end] < _LAST_ASCII else _LAST_CHARACTER)
        used += units[end]
        end += 1
    return None


def _put(tree: dict[str, Any], path: tuple[str, ...], value: object) -> None:
    *structs, name = path
    for struct in structs:
        tree = tree.setdefault(struct, {})
    tree[name] = value


def _json(data_type: DataType, value: Value) -> object:
    """The value as statistics hold it; None for what has no place there: booleans and bytes, to
    which Delta gives no bounds, and NaN and the infinities, which JSON lacks."""
    match value:
        case bool() | bytes():
            return None
        case float() if not isfinite(value):
            return None
        case int() | float() | Decimal():
            text = serialize_value(data_type, value)
            return None if text is None else msgspec.Raw(text.encode())
        case datetime():
            utc = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
            zone = "Z" if value.tzinfo else ""
            return utc.isoformat(timespec="milliseconds") + zone
        case date():
            return value.isoformat()
        case str():
            return value
