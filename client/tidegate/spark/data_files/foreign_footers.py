"""Statistics of files that others wrote, from their footers."""

import json
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.spark.data_files.footers import FooterColumns, statistics_of
from tidegate.spark.tables.layout import TableLayout
from tidegate_protocol.schema.data_types import (
    DATE,
    DOUBLE,
    FLOAT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    DecimalType,
    Leaf,
    MapType,
)

_BY_JAVA = "parquet-mr"
"""The writer that says no bounds of columns with NaN; others leave the NaN out, which is above
every other number for Delta."""


def statistics_by_name(
    footer: pq.FileMetaData, layout: TableLayout, *, tight_bounds: bool | None = None
) -> str:
    """The `stats` text of a file whose columns are found by name, in any case. Columns that it
    lacks have none, and those whose bounds may not be what Delta's are have no bounds.
    `tight_bounds` is said where it is given."""
    wanted = {
        ".".join(leaf.physical_path).lower(): leaf
        for leaf in layout.statistics_columns
        if not isinstance(leaf.type, ArrayType | MapType)
    }
    # `a.b` may be a column's name, or a field of the column `a`.
    is_unclear = _has_dots(footer.schema.to_arrow_schema())
    leaves = []
    unbounded = set()
    for index in range(footer.num_columns):
        column = footer.schema.column(index)
        if is_unclear and "." in column.path:
            continue
        leaf = wanted.get(column.path.lower())
        if leaf is not None:
            leaves.append((index, leaf))
            if not _is_as_delta_has_it(column, leaf, footer):
                unbounded.add(index)
    columns = FooterColumns(
        tuple(leaves),
        footer.num_columns,
        layout.properties.string_prefix_length,
        frozenset(unbounded),
    )
    return statistics_of(footer, columns, tight_bounds=tight_bounds)


def _has_dots(fields: Iterable[pa.Field]) -> bool:
    """Whether a field at any depth has a dot in its name."""
    for field in fields:
        within = [field.type.field(at) for at in range(field.type.num_fields)]
        if "." in field.name or _has_dots(within):
            return True
    return False


def _is_as_delta_has_it(column: pq.ColumnSchema, leaf: Leaf, footer: pq.FileMetaData) -> bool:
    """Whether the raw bounds of the column mean what those of the client's own files do."""
    logical = json.loads(column.logical_type.to_json())
    match leaf.type:
        case DecimalType(scale=scale):
            return bool(logical.get("scale") == scale)
        case found if found in (TIMESTAMP, TIMESTAMP_NTZ):
            return bool(logical.get("timeUnit") == "microseconds")
        case found if found in (FLOAT, DOUBLE):
            return str(footer.created_by or "").startswith(_BY_JAVA)
        case found if found in (STRING, DATE):
            return bool(logical["Type"] == ("String" if found == STRING else "Date"))
    return bool(logical.get("isSigned", True))
