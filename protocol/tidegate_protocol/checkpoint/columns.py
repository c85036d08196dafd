"""What the rows of a checkpoint's files hold beside their actions' own fields: partition values and
statistics as typed columns (PROTOCOL.md, "Checkpoint Schema")."""

from dataclasses import dataclass

from tidegate_protocol.checkpoint.policy import CheckpointPolicy
from tidegate_protocol.features.properties import InvalidProperty, TableProperties
from tidegate_protocol.log.actions import Metadata
from tidegate_protocol.scan.statistics_writing import statistics_columns
from tidegate_protocol.schema.data_types import (
    DataType,
    DecimalType,
    InvalidSchema,
    PrimitiveType,
    physical_name,
)
from tidegate_protocol.schema.table_schema import parse_schema

MOST_TYPED = 2_000
"""Typed values of a file's statistics; with more, nothing is typed, as with more partition columns
than `MOST_PARTITIONS`. Every row of a checkpoint has a place for each of them."""
MOST_PARTITIONS = 1_000
_WITHOUT_BOUNDS = frozenset({"boolean", "binary", "variant", "void"})


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsColumn:
    """A leaf column by its physical path. `has_bounds` says whether minima and maxima are kept."""

    path: tuple[str, ...]
    type: DataType

    @property
    def has_bounds(self) -> bool:
        if isinstance(self.type, DecimalType):
            return True
        return isinstance(self.type, PrimitiveType) and self.type.name not in _WITHOUT_BOUNDS

    @property
    def count(self) -> int:
        """Its values: how many nulls it has, and its bounds."""
        return 3 if self.has_bounds else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FileColumns:
    """`partitions` are the partition columns by their physical names, with their types; None where
    the table's schema does not say them. `parsed` says whether typed partition values and the
    statistics of `statistics` are written."""

    partitions: tuple[tuple[str, DataType], ...] | None = ()
    stats_as_json: bool = True
    parsed: bool = False
    statistics: tuple[StatisticsColumn, ...] = ()


def file_columns(metadata: Metadata, policy: CheckpointPolicy) -> FileColumns:
    """The columns for a table's files. Nothing is typed where the schema does not say how: tables
    of Delta's first versions lack it."""
    try:
        schema = parse_schema(metadata.schema_string)
        properties = TableProperties.parse(metadata.configuration)
    except (InvalidSchema, InvalidProperty):
        return FileColumns(partitions=None)
    fields = [schema.field(name) for name in metadata.partition_columns]
    partitions = tuple((physical_name(field), field.type) for field in fields if field is not None)
    if len(partitions) < len(fields):
        return FileColumns(partitions=None)
    if not policy.stats_as_struct:
        return FileColumns(partitions=partitions, stats_as_json=policy.stats_as_json)
    leaves = statistics_columns(schema, properties, metadata.partition_columns)
    statistics = tuple(StatisticsColumn(path=leaf.physical_path, type=leaf.type) for leaf in leaves)
    if len(partitions) > MOST_PARTITIONS or sum(one.count for one in statistics) > MOST_TYPED:
        # As JSON whatever was asked for: else readers would have no statistics at all.
        return FileColumns(partitions=partitions)
    return FileColumns(
        partitions=partitions,
        stats_as_json=policy.stats_as_json,
        parsed=True,
        statistics=statistics,
    )
