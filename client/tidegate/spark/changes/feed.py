"""The changes of a span of versions: their files, and the schema that all of them are read by."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pyspark.sql.types import LongType, StringType, StructField, TimestampType
from pyspark.sql.types import StructType as SparkStruct

from tidegate.handle import TableHandle
from tidegate.models import TableVersion
from tidegate.spark.changes.commits import ChangedFile, Commit, changed_files, commits_of
from tidegate.spark.changes.compatible import is_read_as
from tidegate.spark.changes.span import Span
from tidegate.spark.errors import ChangesUnavailable
from tidegate.spark.tables.layout import Reading, TableLayout
from tidegate.spark.tables.refusals import check_readable
from tidegate.spark.tables.schemas import as_nullable
from tidegate_protocol.features.properties import TableProperties
from tidegate_protocol.log.actions import Metadata

CHANGE_TYPE = "_change_type"
COMMIT_VERSION = "_commit_version"
COMMIT_TIMESTAMP = "_commit_timestamp"
FEED_FIELDS = (
    StructField(CHANGE_TYPE, StringType()),
    StructField(COMMIT_VERSION, LongType()),
    StructField(COMMIT_TIMESTAMP, TimestampType()),
)
_SWITCH = "delta.enableChangeDataFeed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """The files that hold a span's changes, oldest commit first, and the table's columns that they
    are read by."""

    layout: TableLayout
    files: tuple[ChangedFile, ...]

    @property
    def schema(self) -> SparkStruct:
        """The table's columns, and those of the feed."""
        return feed_schema(self.layout)


def feed_schema(layout: TableLayout) -> SparkStruct:
    """The columns of the feed of a table with these columns."""
    return SparkStruct([*as_nullable(layout.spark_schema).fields, *FEED_FIELDS])


def schema_version(table: TableHandle, span: Span) -> TableVersion:
    """The version by whose schema a span is read: the latest, and in a table with column mapping
    the last of the span, as in Delta."""
    latest = table.as_of(span.latest)
    if TableProperties.parse(latest.metadata.configuration).column_mapping:
        return table.as_of(span.last)
    return latest


def feed_of(table: TableHandle, span: Span) -> Feed:
    """The changes of a span. Raises `ChangesUnavailable` where a version of it did not record its
    changes, or had columns that are no longer read, `VersionNotFound` where the log does not go
    back so far, and `UnsupportedTable`."""
    read = schema_version(table, span)
    layout = TableLayout.of(name=read.name, location=read.location, metadata=read.metadata)
    layout = replace(layout, reading=Reading(version=None))
    check_readable(layout, read.protocol)
    check = FeedCheck(span=span, read=read, layout=layout)
    check.metadata(span.first, table.as_of(span.first).metadata)
    files = check.files(commits_of(table, span.first, span.last))
    return Feed(layout=layout, files=tuple(files))


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedCheck:
    """What has to hold of every version of a span that is read by the schema of `read`."""

    span: Span
    read: TableVersion
    layout: TableLayout

    def files(self, commits: Iterable[Commit]) -> list[ChangedFile]:
        """The changed files of commits, of which the metadata before the first was checked."""
        found: list[ChangedFile] = []
        for commit in commits:
            if commit.metadata is not None:
                self.metadata(commit.version, commit.metadata)
            found += changed_files(commit)
        return found

    def metadata(self, version: int, metadata: Metadata) -> None:
        """Raise `ChangesUnavailable` unless the feed is on and the columns can be read."""
        span = self.span
        check_recorded(span, version, metadata)
        own = TableLayout.of(name=self.read.name, location=self.read.location, metadata=metadata)
        # Files have columns under their physical names, which stay where one is renamed.
        if is_read_as(own.physical, self.layout.physical):
            return
        apart = (
            f"ask for the versions {span.first} to {version - 1} and {version} to {span.last} apart"
            if version > span.first
            else "ask for versions from the one on that brought the columns of version "
            f"{self.read.version}"
        )
        raise ChangesUnavailable(
            f"Retrieving table changes between version {span.first} and {span.last} failed because "
            f"of an incompatible schema change. Your read schema is {self.layout.described} at "
            f"version {self.read.version}, but we found an incompatible schema change at version "
            f"{version}: {own.described}",
            hint=apart,
            error_class="DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE",
        )


def check_recorded(span: Span, version: int, metadata: Metadata) -> None:
    """Raise `ChangesUnavailable` unless the feed is on in a version of the span."""
    if not TableProperties.parse(metadata.configuration).change_data_feed:
        raise ChangesUnavailable(
            f"Error getting change data for range [{span.first} , "
            f"{span.last}] as change data was not recorded for version [{version}]. If you've "
            "enabled change data feed on this table, look into its history to see when it was "
            f"first enabled. Otherwise, to start recording change data, set {_SWITCH}=true.",
            error_class="DELTA_MISSING_CHANGE_DATA",
        )
