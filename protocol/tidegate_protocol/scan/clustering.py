"""The columns that a table is clustered by (PROTOCOL.md, "Clustered Table").

They stand in the metadata domain `delta.clustering` by the names that files know them by. Commands
and histories call them by the names of the schema.
"""

import re
from collections.abc import Sequence

import msgspec

from tidegate_protocol.features.properties import TableProperties
from tidegate_protocol.log.actions import DomainMetadata
from tidegate_protocol.scan.statistics_writing import statistics_columns
from tidegate_protocol.schema.column_paths import InvalidColumnPath, parse
from tidegate_protocol.schema.data_types import (
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DecimalType,
    Leaf,
    StructType,
    type_name,
)

Path = tuple[str, ...]

CLUSTERING_DOMAIN = "delta.clustering"
MOST_COLUMNS = 4
"""Delta's limit for commands. Others may have given a table more."""

_BOUNDED = (BYTE, DATE, DOUBLE, FLOAT, INTEGER, LONG, SHORT, STRING, TIMESTAMP, TIMESTAMP_NTZ)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class InvalidClustering(ValueError):
    """What cannot be clustered by. `error_class` is Delta's."""

    def __init__(self, error_class: str, detail: str) -> None:
        super().__init__(detail)
        self.error_class = error_class


class _Configuration(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    # A column is a path of names; the protocol's example has a name in its place.
    clustering_columns: list[str | list[str]]


class _Written(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    clustering_columns: list[list[str]]
    domain_name: str = CLUSTERING_DOMAIN


_CONFIGURATION = msgspec.json.Decoder(_Configuration)


def physical_paths(configuration: str) -> tuple[Path, ...]:
    """The columns that the domain names. Raises `ValueError` for what is no configuration of it."""
    try:
        columns = _CONFIGURATION.decode(configuration).clustering_columns
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None
    return tuple((column,) if isinstance(column, str) else tuple(column) for column in columns)


def domain_of(columns: Sequence[Leaf]) -> DomainMetadata:
    """The domain of a table that is clustered by these columns, as Delta writes it."""
    paths = [list(column.physical_path) for column in columns]
    text = msgspec.json.encode(_Written(clustering_columns=paths)).decode()
    return DomainMetadata(domain=CLUSTERING_DOMAIN, configuration=text, removed=False)


def columns_at(schema: StructType, physical: Sequence[Path]) -> tuple[Leaf, ...]:
    """The columns of the schema at physical paths; without those that it does not have."""
    known = {leaf.physical_path: leaf for leaf in schema.leaves()}
    return tuple(known[path] for path in physical if path in known)


def shown(column: Leaf) -> str:
    """How Delta's tags and histories call the column."""
    return ".".join(
        name if _PLAIN.fullmatch(name) else f"`{name.replace('`', '``')}`" for name in column.path
    )


def clustering_columns(
    names: Sequence[str],
    *,
    schema: StructType,
    properties: TableProperties,
    partition_columns: Sequence[str],
) -> tuple[Leaf, ...]:
    """The columns of these names, as SQL has them, for a table to be clustered by.

    Raises `InvalidClustering` for more than Delta takes, for what is not there or is named twice,
    in a partitioned table, and for columns that no bounds are kept of: clustering would help
    nobody who reads.
    """
    if names and partition_columns:
        raise InvalidClustering(
            "DELTA_CLUSTER_BY_WITH_PARTITIONED_BY",
            "Clustering and partitioning cannot both be specified. Please remove partitionedBy if "
            "you want to create a Delta table with clustering",
        )
    found = [_column(name, schema) for name in names]
    paths = [column.path for column in found]
    if twice := sorted({shown(column) for column in found if paths.count(column.path) > 1}):
        raise InvalidClustering(
            "DELTA_DUPLICATE_COLUMNS_FOUND.CLUSTER_BY",
            f"Found duplicate column(s): {', '.join(twice)}, in CLUSTER BY",
        )
    check_number(len(names))
    check_bounded(found, schema=schema, properties=properties)
    return tuple(found)


def check_number(count: int) -> None:
    """Raise `InvalidClustering` for more columns than Delta takes."""
    if count > MOST_COLUMNS:
        raise InvalidClustering(
            "DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS",
            f"CLUSTER BY supports up to {MOST_COLUMNS} clustering columns, but the table has "
            f"{count} clustering columns. Please remove the extra clustering columns",
        )


def check_bounded(
    columns: Sequence[Leaf], *, schema: StructType, properties: TableProperties
) -> None:
    """Raise `InvalidClustering` for columns without minima and maxima in the statistics that the
    table's properties ask every writer for."""
    if others := [column for column in columns if not _is_bounded(column)]:
        named = ", ".join(f"{shown(column)} : {type_name(column.type)}" for column in others)
        raise InvalidClustering(
            "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED",
            f"CLUSTER BY is not supported because the following column(s): {named} don't support "
            "data skipping",
        )
    collected = statistics_columns(schema, properties, ())
    known = {leaf.path for leaf in collected}
    if without := [shown(column) for column in columns if column.path not in known]:
        raise InvalidClustering(
            "DELTA_CLUSTERING_COLUMN_MISSING_STATS",
            "Clustering requires clustering columns to have stats. Couldn't find clustering "
            f"column(s) '{', '.join(without)}' in stats schema: "
            f"[{', '.join(shown(leaf) for leaf in collected)}]",
        )


def _is_bounded(column: Leaf) -> bool:
    return isinstance(column.type, DecimalType) or column.type in _BOUNDED


def _column(name: str, schema: StructType) -> Leaf:
    try:
        found = schema.leaf(parse(name))
    except InvalidColumnPath:
        found = None
    if found is None:
        raise InvalidClustering(
            "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
            f"Couldn't find column {name} in: {type_name(schema)}",
        )
    return found
