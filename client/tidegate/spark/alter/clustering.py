"""CLUSTER BY: the columns that OPTIMIZE clusters a table's rows by."""

from collections.abc import Iterable, Sequence

from tidegate.models import Receipt
from tidegate.spark.alter.alteration import Alteration, shown_path
from tidegate.spark.expressions.errors import InvalidCommand
from tidegate.spark.tables.clustering import clustering_of
from tidegate.spark.write.clustering import clustered_by
from tidegate_protocol.features.known import CLUSTERING
from tidegate_protocol.features.table_features import with_features
from tidegate_protocol.scan.clustering import (
    InvalidClustering,
    check_bounded,
    columns_at,
    domain_of,
    shown,
)
from tidegate_protocol.schema.data_types import Leaf
from tidegate_protocol.schema.table_schema import parse_schema

_DOMAIN_METADATA = "domainMetadata"


def cluster_by(alteration: Alteration, names: Sequence[str]) -> Receipt | None:
    """Cluster the table by columns of these names from now on, without any no more; None for a
    table that never was clustered, and is not to be. Files stay as they are until an OPTIMIZE.

    Raises `InvalidCommand`, and what `Transaction.commit` raises.
    """
    if alteration.layout.partition_columns:
        raise InvalidCommand(
            "DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED",
            "ALTER TABLE CLUSTER BY cannot be applied to a partitioned table",
        )
    if not names and not alteration.supports(CLUSTERING):
        return None
    layout = alteration.layout
    columns = clustered_by(
        names, schema=layout.schema, properties=layout.properties, partition_by=()
    )
    before = clustered_columns(alteration)
    if not alteration.supports(CLUSTERING):
        alteration.set_protocol(with_features(alteration.protocol, {CLUSTERING, _DOMAIN_METADATA}))
    alteration.transaction.action(domain_of(columns))
    return alteration.commit(
        "CLUSTER BY",
        {
            "oldClusteringColumns": ",".join(map(shown, before)),
            "newClusteringColumns": ",".join(map(shown, columns)),
        },
    )


def clustered_columns(alteration: Alteration) -> tuple[Leaf, ...]:
    """The columns that the table is clustered by."""
    physical = clustering_of(alteration.transaction.table, alteration.protocol)
    return columns_at(alteration.layout.schema, physical)


def check_stay_bounded(alteration: Alteration, schema_text: str) -> None:
    """Raise `InvalidCommand` where other columns, or their order, would have writers keep no
    statistics of clustering columns any more."""
    physical = [column.physical_path for column in clustered_columns(alteration)]
    if not physical:
        return
    schema = parse_schema(schema_text)
    try:
        check_bounded(
            columns_at(schema, physical), schema=schema, properties=alteration.layout.properties
        )
    except InvalidClustering as error:
        raise InvalidCommand(error.error_class, str(error)) from None


def keep_clustering(alteration: Alteration, dropped: Iterable[Sequence[str]]) -> None:
    """Have the transaction say again by what the table is clustered: a CLUSTER BY of others, which
    may name a column that is dropped meanwhile, is a conflict then. Raises `InvalidCommand` where
    a column that is to be dropped is one of those, or holds one."""
    if not alteration.supports(CLUSTERING):
        return
    paths = [tuple(path) for path in dropped]
    columns = clustered_columns(alteration)
    found = [
        column for column in columns if any(column.path[: len(path)] == path for path in paths)
    ]
    if found:
        raise InvalidCommand(
            "DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN",
            f"Dropping clustering columns ({', '.join(shown_path(each.path) for each in found)}) "
            "is not allowed",
        )
    alteration.transaction.action(domain_of(columns))
