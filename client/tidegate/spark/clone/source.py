"""What is cloned: a table at a version."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pyspark.sql import SparkSession

from tidegate.handle import TableHandle
from tidegate.models import DataFile
from tidegate.spark.application import table_of
from tidegate.spark.commands.logical_files import check_there, ignores_missing
from tidegate.spark.expressions.errors import InvalidCommand
from tidegate.spark.read.times import milliseconds_of, scan_at
from tidegate.spark.storage.locations import DataStore
from tidegate.spark.storage.opening import store_at
from tidegate.spark.tables.clustering import clustering_at
from tidegate.spark.tables.layout import TableLayout
from tidegate_protocol.features.known import CATALOG_MANAGED
from tidegate_protocol.features.table_features import implied_features
from tidegate_protocol.log.actions import Metadata, Protocol
from tidegate_protocol.log.codec import with_fields

_NEW = {"dataChange": True, "baseRowId": None, "defaultRowCommitVersion": None}
"""What the log says of files that are new to a table; they get row ids there."""
NO_VERSION = -1
"""Of what is no table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CloneSource:
    """What is cloned, with the paths of its files as they are at its location. `table_id` is None
    for what is no table of the service, and `protocol` for one that has what it needs.
    `clustering` are the physical paths of the columns that it is clustered by."""

    name: str
    location: str
    version: int
    is_latest: bool
    metadata: Metadata
    files: Sequence[DataFile]
    table_id: str | None = None
    protocol: Protocol | None = None
    clustering: tuple[tuple[str, ...], ...] = ()

    @property
    def catalog_managed(self) -> bool:
        """Whether the service ratifies its commits."""
        return self.protocol is not None and CATALOG_MANAGED in implied_features(self.protocol)

    @property
    def layout(self) -> TableLayout:
        """Its files, as a reader sees them."""
        return TableLayout.of(name=self.name, location=self.location, metadata=self.metadata)

    def store(self, spark: SparkSession) -> DataStore:
        """Where its files are."""
        return store_at(self.location, spark)


def source_of(
    table: TableHandle,
    spark: SparkSession,
    *,
    version: int | None = None,
    timestamp: datetime | int | str | None = None,
) -> CloneSource:
    """The table at a version, at the latest one not after a timestamp, or now.

    Raises `ValueError` for both, `VersionNotFound`, `InvalidCommand` for a timestamp outside of the
    table's history, and `InvalidRequest` for files that are not there any more, unless the session
    passes over them.
    """
    if version is not None and timestamp is not None:
        raise ValueError(f"expected a version or a timestamp, found {version} and {timestamp}")
    table = table_of(table, spark)
    head = table.head()
    if timestamp is not None:
        scan = scan_at(
            table,
            milliseconds_of(timestamp, spark),
            spark,
            latest=head.timestamp,
            too_late=_too_late,
            too_early=_too_early,
        )
    else:
        scan = table.scan(version=head.version if version is None else version)
    source = CloneSource(
        name=head.name,
        location=table.location,
        version=scan.version,
        is_latest=scan.version == head.version,
        metadata=scan.metadata,
        files=scan.files,
        table_id=table.id,
        protocol=scan.protocol,
        clustering=clustering_at(table, scan.version, scan.protocol),
    )
    if not source.is_latest and not ignores_missing(spark):
        what = f"version {source.version} of table {source.name}"
        check_there(source.files, source.store(spark), what=what)
    return replace(source, files=[with_fields(file, _NEW) for file in source.files])


def _too_late(asked: str, latest: str) -> InvalidCommand:
    return InvalidCommand(
        "DELTA_TIMESTAMP_GREATER_THAN_COMMIT",
        f"The provided timestamp ({asked}) is after the latest version available to this table "
        f"({latest})",
    )


def _too_early(asked: str, why: str) -> InvalidCommand:
    return InvalidCommand(
        "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION",
        f"The provided timestamp ({asked}) is before the earliest version available: {why}",
    )
