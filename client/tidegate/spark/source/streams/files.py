"""The files that a stream reads, one version after the other, each behind an offset."""

from collections.abc import Iterator, Sequence

from tidegate.errors import VersionNotFound
from tidegate.handle import TableHandle
from tidegate.spark.changes.commits import Commit, changed_files, commits_of
from tidegate.spark.changes.compatible import is_read_as
from tidegate.spark.changes.feed import check_recorded
from tidegate.spark.changes.span import Span
from tidegate.spark.errors import StreamStopped
from tidegate.spark.source.file_rows import Change
from tidegate.spark.source.read_options import StreamOptions
from tidegate.spark.source.read_tasks import SizedRows, changed_rows_of, rows_of
from tidegate.spark.source.streams.offset import Offset
from tidegate.spark.tables.layout import TableLayout
from tidegate_protocol.log.actions import Add, Metadata, Remove

_INSERT = "insert"

Step = tuple[Offset, Sequence[SizedRows]]
"""Files that a batch takes together or not, and the offset behind them."""


class StreamFiles:
    """What a table has for a stream of one schema. It is asked of the service as it is wanted."""

    def __init__(self, table: TableHandle, layout: TableLayout, options: StreamOptions) -> None:
        self._table = table
        self._layout = layout
        self._options = options

    def steps(self, start: Offset, *, last: int) -> Iterator[Step]:
        """The steps behind an offset, up to a version, oldest first.

        Raises `StreamStopped` for a commit that the stream cannot go past.
        """
        place = start
        if place.is_snapshot:
            yield from self._steps_of(place, self._snapshot(place.version))
            place = place.next_version()
        while place.version <= last:
            commit = self._commit(place.version, last=last)
            if commit is None:
                place = place.next_version()
                continue
            files = self._changes(commit) if self._options.is_feed else self._appended(commit)
            if self._options.is_feed:
                # An update's rows before and after it are not to come in different batches.
                if files:
                    yield place.next_version(), files
            else:
                yield from self._steps_of(place, files)
            place = place.next_version()

    def check_begin(self, version: int) -> None:
        """Raise `StreamStopped` unless the table has the stream's columns as of a version, with
        which the stream goes on; a version that is lost, and may be, is passed over."""
        try:
            found = self._table.as_of(version)
        except VersionNotFound as error:
            if self._options.fail_on_data_loss:
                raise self._lost(version, error) from error
            return
        self.check_schema(version, found.metadata)

    def check_schema(self, version: int, metadata: Metadata) -> None:
        """Raise `StreamStopped` unless the stream's columns are those of a version's rows."""
        layout = self._layout
        own = TableLayout.of(name=layout.name, location=layout.location, metadata=metadata)
        if not is_read_as(own, layout):
            raise StreamStopped(
                f"Detected schema change in version {version}: "
                f"streaming source schema: {layout.described}, data file schema: "
                f"{own.described}. Please try restarting the query. If this "
                "issue repeats across query restarts without making progress, you have made an "
                "incompatible schema change and need to start your query from scratch using a new "
                "checkpoint directory.",
                error_class="DELTA_SCHEMA_CHANGED_WITH_VERSION",
            )
        if self._options.is_feed:
            check_recorded(Span(first=version, last=version, latest=version), version, metadata)

    def _steps_of(self, place: Offset, files: Sequence[SizedRows]) -> Iterator[Step]:
        for index in range(place.index + 1, len(files)):
            yield place.behind(index, of=len(files)), [files[index]]

    def _snapshot(self, version: int) -> list[SizedRows]:
        """The files of a version, in an order that is the same whenever it is asked for."""
        try:
            scan = self._table.scan(version=version)
        except VersionNotFound as error:
            raise self._lost(version, error) from error
        change = None
        if self._options.is_feed:
            change = Change(change_type=_INSERT, version=version, timestamp=scan.timestamp)
        files = sorted(scan.files, key=lambda file: (file.modification_time, file.path))
        return [rows_of(self._layout, file, change) for file in files]

    def _commit(self, version: int, *, last: int) -> Commit | None:
        """A version's commit, of columns that the stream has; None for one that is lost and may
        be."""
        try:
            (commit,) = commits_of(self._table, version, version)
        except VersionNotFound as error:
            if self._options.fail_on_data_loss or version == last:
                raise self._lost(version, error) from error
            return None
        if commit.metadata is not None:
            self.check_schema(version, commit.metadata)
        return commit

    def _changes(self, commit: Commit) -> list[SizedRows]:
        return [changed_rows_of(self._layout, file) for file in changed_files(commit)]

    def _appended(self, commit: Commit) -> list[SizedRows]:
        added = [a for a in commit.actions if isinstance(a, Add) and a.data_change]
        removed = [a for a in commit.actions if isinstance(a, Remove) and a.data_change]
        options = self._options
        if removed:
            if options.skip_change_commits:
                return []
            if added and not options.ignore_changes:
                raise StreamStopped(
                    "Detected a data update (for example "
                    f"{removed[0].path}) in the source table at version {commit.version}. This is "
                    "currently not supported. If this is going to happen regularly and you are "
                    "okay to skip changes, set the option 'skipChangeCommits' to 'true'. If you "
                    "would like the data update to be reflected, please restart this query with a "
                    f"fresh checkpoint directory. The source table is {self._table.name}.",
                    error_class="DELTA_SOURCE_TABLE_IGNORE_CHANGES",
                )
            if not added and not (options.ignore_changes or options.ignore_deletes):
                raise StreamStopped(
                    "Detected deleted data (for example "
                    f"{removed[0].path}) from streaming source at version {commit.version}. This "
                    "is currently not supported. If you'd like to ignore deletes, set the option "
                    f"'ignoreDeletes' to 'true'. The source table is {self._table.name}.",
                    error_class="DELTA_SOURCE_IGNORE_DELETE",
                )
        return [rows_of(self._layout, file) for file in added]

    def _lost(self, version: int, error: VersionNotFound) -> StreamStopped:
        return StreamStopped(
            f"Delta stream cannot resume from version "
            f"{version} of table {self._table.name}: {error.detail}. Restart the stream with a new "
            "checkpoint location and consider increasing delta.logRetentionDuration. To skip "
            'missing data instead, set .option("failOnDataLoss", "false").',
            error_class="DELTA_MISSING_FILES_UNEXPECTED_VERSION",
        )
