"""The changes of a span of versions: their files, and the schema that all of them are read by."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql.types import LongType, StringType, StructField, TimestampType
from pyspark.sql.types import StructType as SparkStruct

from tidegate.handle import TableHandle
from tidegate.models import TableVersion
from tidegate.spark.changes.commits import ChangedFile, changed_files, commits_of
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
    files: list[ChangedFile] = []
    changes = [(span.first, table.as_of(span.first).metadata)]
    check_recorded(span, *changes[0])
    for commit in commits_of(table, span.first, span.last):
        if commit.metadata is not None and commit.version > span.first:
            check_recorded(span, commit.version, commit.metadata)
            changes.append((commit.version, commit.metadata))
        files += changed_files(commit)
    _check_read(span, changes, read, layout)
    return Feed(layout=layout, files=tuple(files))


def _check_read(
    span: Span,
    changes: Sequence[tuple[int, Metadata]],
    read: TableVersion,
    layout: TableLayout,
) -> None:
    """Raise `ChangesUnavailable` unless each version's columns can be read; `changes` are the
    versions from which a metadata holds."""
    found = [
        (version, TableLayout.of(name=read.name, location=read.location, metadata=metadata))
        for version, metadata in changes
    ]
    odd = [i for i, (_, own) in enumerate(found) if not _is_read(own, layout)]
    if not odd:
        return
    version, own = found[odd[0]]
    behind = [later for later, _ in found[odd[-1] + 1 :]]
    hint = f"ask for versions from {behind[0]} on" if behind else "ask for later versions"
    if layout.is_mapped:
        hint += ", or for earlier ones, which are read by the columns of the last of them"
    raise ChangesUnavailable(
        f"Retrieving table changes between version {span.first} and {span.last} failed because "
        f"of an incompatible schema change. Your read schema is {layout.described} at version "
        f"{read.version}, but we found an incompatible schema change at version {version}: "
        f"{own.described}",
        hint=hint,
        error_class="DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE",
    )


def _is_read(own: TableLayout, read: TableLayout) -> bool:
    # Files have columns under their physical names, which stay where one is renamed, and which are
    # the names that the columns have where mapping was taken from the table later.
    return is_read_as(own.physical, read.physical) and (read.is_mapped or is_read_as(own, read))


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
