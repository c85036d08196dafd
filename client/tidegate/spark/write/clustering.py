"""What a table is to be clustered by, checked before any job."""

from collections.abc import Mapping, Sequence

from tidegate.spark.expressions.errors import InvalidCommand
from tidegate_protocol.features.properties import TableProperties
from tidegate_protocol.log.actions import DomainMetadata
from tidegate_protocol.scan.clustering import (
    CLUSTERING_DOMAIN,
    InvalidClustering,
    clustering_columns,
    domain_of,
)
from tidegate_protocol.schema.data_types import Leaf, StructType
from tidegate_protocol.schema.table_schema import parse_schema


def clustered_by(
    names: Sequence[str],
    *,
    schema: StructType,
    properties: TableProperties,
    partition_by: Sequence[str],
) -> tuple[Leaf, ...]:
    """The columns of these names, for a table to be clustered by. Raises `InvalidCommand`."""
    try:
        return clustering_columns(
            names, schema=schema, properties=properties, partition_columns=partition_by
        )
    except InvalidClustering as error:
        raise InvalidCommand(error.error_class, str(error)) from None


def replacing(
    names: Sequence[str],
    *,
    was_clustered: bool,
    schema_text: str,
    configuration: Mapping[str, str],
    partition_by: Sequence[str],
) -> DomainMetadata | None:
    """The domain of a table that takes the place of another one; None where neither has any to do
    with clustering. Raises `InvalidCommand`."""
    if names:
        columns = clustered_by(
            names,
            schema=parse_schema(schema_text),
            properties=TableProperties.parse(configuration),
            partition_by=partition_by,
        )
        return domain_of(columns)
    if not was_clustered:
        return None
    if partition_by:
        raise InvalidCommand(
            "DELTA_CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE",
            "Replacing a clustered Delta table with a partitioned table is not allowed",
        )
    return DomainMetadata(domain=CLUSTERING_DOMAIN, configuration="{}", removed=True)
