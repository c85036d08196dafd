"""What the use cases need from the commit index. `index` implements it.

A call that meets a broken database raises `IndexUnavailable`: nothing is known to have happened,
ask again.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from tidegate_protocol.log.actions import Action, Add, LogicalFile, PartitionValues
from tidegate_protocol.log.content import Content, LogFile
from tidegate_protocol.prepare.live_files import Assumed, FileAssumptions
from tidegate_protocol.proposal.transaction import ReadState, WinningCommit
from tidegate_service.core.access.audit import Change
from tidegate_service.core.access.roles import Caller
from tidegate_service.core.ports.checkpoints import CheckpointIndex
from tidegate_service.core.ports.contents import ContentIndex
from tidegate_service.core.ports.files.comparison import Comparison, FileCounts
from tidegate_service.core.ports.files.named_files import NamedFilesIndex
from tidegate_service.core.ports.files.scanned import StoredFiles, Wanted
from tidegate_service.core.ports.forgotten import ForgottenHere, ForgottenTables
from tidegate_service.core.ports.records import (
    Aborted,
    CommitGlance,
    CommitRecord,
    Glance,
    NewTable,
    QuarantineCause,
    RatifiedCommit,
    TableHead,
    TableRecord,
    Waiting,
)
from tidegate_service.core.ports.told import TellingIndex
from tidegate_service.core.ports.winners import WinnersIndex
from tidegate_service.core.sharing.pools import Share


class FilesFirst(Exception):
    """Something was asked of a section whose newest commits are deferred: their files have to be
    there first, since nothing can be taken back that the index was asked about."""


class TakesLong(Exception):
    """What was asked of a section is more than may be read there at once."""


class CommitSection(ForgottenHere, Protocol):
    """One Postgres transaction that holds one table's row lock (docs/architecture.md, the walk).

    Left without `save()`, it is rolled back. `table` is the row as locked, kept up to date by
    `append`. `now_ms` is the database's clock, read after the lock was granted. `database` names
    the database and the run of its server: whatever may have lost commits, as a failover, a
    restore or a restart, gives it another name.
    """

    table: TableRecord
    now_ms: int
    database: str

    async def transaction(self, transaction_id: str) -> CommitRecord | Aborted | None:
        """What is known of a transaction id on this table."""

    async def expect(self, transaction_ids: Sequence[str]) -> None:
        """Look these ids up together, since `transaction` will be asked for each: those that are
        not known then cost no question of their own."""

    async def state_at(self, version: int, *, most_bytes: int | None = None) -> ReadState | None:
        """Protocol and metadata at a version; None where the index does not reach. Raises
        `TakesLong`, having read nothing, where they have more bytes than `most_bytes`."""

    async def winners(
        self, after: int, through: int, *, most_bytes: int | None = None
    ) -> Sequence[WinningCommit] | None:
        """Versions `after + 1 .. through` in order; None where any is missing. Raises `TakesLong`
        where they have more bytes than `most_bytes`."""

    async def partition_values(
        self, path: str, version: int, *, vector: str | None = None
    ) -> PartitionValues | None:
        """Partition values of the file with this decoded path, live at the version. It is found in
        any case where a later version closed it under this deletion vector, and else where the path
        has few rows."""

    async def content(self, version: int) -> Content | None:
        """The bytes of a version that is not published, or was not long ago; None once they are
        forgotten."""

    async def stored_content(self, version: int) -> bytes | LogFile | None:
        """The bytes that the index keeps of a version, published or not."""

    async def kept(self, version: int) -> tuple[str | None, int]:
        """The SHA-256 of a version's bytes, None where only its checkpoint was there to be read,
        and how many of the bytes the index keeps. The index has the version."""

    async def answered(self) -> tuple[int, int]:
        """The newest version that this service wrote itself, and its timestamp; those of the oldest
        version where there is none."""

    async def row_id_high_water_mark(self) -> int:
        """The highest row id given out up to the table's latest version; -1 where none was."""

    def live_files(self, version: int) -> AsyncIterator[Sequence[Add]]:
        """The files live at a version, in batches; what they make of the lock's hold is their
        number, so only for the rare commits that change what every file must be."""

    async def broken(
        self, transaction_id: str, assumptions: FileAssumptions, version: int
    ) -> Collection[LogicalFile]:
        """The files by which a transaction's assumptions are not true of a version
        (`FileAssumptions.broken`)."""

    async def append(self, commit: RatifiedCommit) -> None:
        """Take the next version: it must be `table.latest_version + 1`. It is written together
        with others, at the latest by `flush`, by `save`, or before the next question that needs
        it; until then the table's number of files and their size are those from before."""

    def write_ahead(self) -> None:
        """Begin to write what was taken, while the caller waits for something else; nothing is
        raised before the next call."""

    async def flush(self) -> None:
        """Write what was taken."""

    def defer_saving(self) -> None:
        """Defer saving what `append` takes from now on. Until `allow_saving`, whatever would save
        it, or has to see it written, raises `FilesFirst`."""

    def allow_saving(self) -> None:
        """What was deferred may be saved."""

    def unstage(self, count: int, head: TableRecord) -> None:
        """Drop the newest commits, which are deferred; the table is at `head` then, as before
        them."""

    async def take_time(self) -> None:
        """Let two minutes pass between two calls here, for a section that reads a whole log: the
        database otherwise ends one that is idle for seconds. Asked again, they begin anew."""

    async def load_base(
        self, commit: RatifiedCommit, actions: AsyncIterator[Sequence[Action]]
    ) -> None:
        """Write the first version of a table whose log reaches back no further: the row of
        `commit`, whatever its version, and as the state at it what `actions` add up to, which
        are those of a snapshot, in any order, with a protocol and metadata among them. Raises
        `UnreadableFile` where they name a file twice."""

    async def date_back(self, before: int) -> None:
        """Move the timestamps of all versions so far before `before` (ms), in their order; the
        latest one's is not before it yet."""

    async def date_in_order(self) -> None:
        """Move the timestamps of versions before those of all that follow them, a millisecond each;
        the latest one's stays."""

    async def abort(self, transaction_id: str) -> None:
        """Abort a transaction id, of which no attempt can land any more."""

    async def quarantine(self, reason: str, cause: QuarantineCause = QuarantineCause.LOG) -> None:
        """Mark the table readable but closed to commits, and record it. Of a table that is so
        already, reason and cause stay, unless it is now known that its database was set back."""

    async def release(self) -> None:
        """Take commits again."""

    async def keep_unpublished(self) -> None:
        """Keep the bytes of the versions that are not published aside for `kept_unpublished`:
        `reset` drops them."""

    async def kept_unpublished(self, version: int) -> bytes | LogFile | None:
        """What was kept aside of a version."""

    async def reset(self) -> None:
        """Drop what the index holds of the table but its row and its aborted ids; the table then
        has no version. What transaction ids landed as is kept aside for `restore_ids`."""

    async def rewritten(self) -> int | None:
        """The first version that was there before `reset`, under a transaction id, and has other
        bytes now; None where there is none."""

    async def restore_ids(self) -> Sequence[tuple[int, str]]:
        """Keep the answers of transactions that the versions written since `reset` do not
        hold: an id lands once, whether the log still says so or not. What landed as a version that
        is behind the head now, or has other bytes, is no part of the log, which may have the id at
        another one. Where it has it at none, the id is closed; returns those versions and ids, as
        the index has them."""

    async def record_change(self, change: Change) -> None:
        """Write the audit row of a change that this section makes. Commits need none."""

    async def save(self) -> None:
        """COMMIT. Raises `CommitStateUnknown` where the answer was lost; the connection is
        then closed, never returned to the pool."""


class CommitGroup(Protocol):
    """One Postgres transaction that holds the row locks of several tables. `sections` are those
    tables, by their ids; they begin and end together, by the `save` of any of them or of this.
    """

    @property
    def sections(self) -> Mapping[str, CommitSection]: ...

    @property
    def is_over(self) -> bool:
        """Whether it was saved, a statement of it failed, or a table's index was left half made
        anew; nothing more can be asked of it."""

    @property
    def is_saved(self) -> bool:
        """Whether its COMMIT was answered."""

    async def expect_assumptions(self, asked: Mapping[str, Mapping[str, Assumed]]) -> None:
        """Look up together what breaks these assumptions, by table and transaction id, so that
        `broken` of the sections mostly needs no statement. The versions are there already."""

    async def save(self) -> None:
        """As `CommitSection.save`."""


class Index(
    ForgottenTables,
    CheckpointIndex,
    ContentIndex,
    NamedFilesIndex,
    TellingIndex,
    WinnersIndex,
    Protocol,
):
    """The commit index. Reads take a connection of their own and see what is committed, whether a
    standby has it or not: a caller is told of versions up to a head that was told.

    A `table` argument named `ref` is a full name (any case) or an id; `table_id` is the id.
    """

    def commit_section(
        self, table_id: str, *, who: str | None = None
    ) -> AbstractAsyncContextManager[CommitSection]:
        """Lock an existing table's row, in the name of `who` (`core.access.roles.share_of`), who
        has a share of the sections that there may be at a time. Raises `TableNotFound`."""

    def commit_group(
        self, asked: Mapping[str, Sequence[str]], *, wait: bool
    ) -> AbstractAsyncContextManager[CommitGroup]:
        """Lock the rows of the tables with these ids, which will be asked for these transaction
        ids. With `wait`, for a single table, whoever holds it now; else only those that nobody
        holds. What is not there, or not free, is not among the sections."""

    def creation_section(
        self, table: NewTable, *, who: str | None = None
    ) -> AbstractAsyncContextManager[CommitSection]:
        """Insert a table at version -1 and hold its row, in the name of `who` as above. Raises
        `TableExists` for a name or location in use, or a location inside or around another
        table's."""

    async def table(self, ref: str) -> TableRecord | None: ...
    async def head(self, ref: str) -> TableHead | None: ...
    async def glance(self, table_id: str) -> Glance | None: ...

    async def forget(self, table_id: str, *, by: Caller) -> bool:
        """Delete everything known of the table but the audit trail and what `core.ports.forgotten`
        keeps, under its row lock. False, with nothing deleted, where it is not there or a version
        of it waits for publishing."""

    async def transaction(
        self, table_id: str, transaction_id: str
    ) -> CommitRecord | Aborted | None: ...

    async def commit(self, table_id: str, version: int) -> CommitRecord | None: ...

    async def glance_at_commit(self, table_id: str, version: int) -> CommitGlance | None: ...

    async def history(
        self, table_id: str, *, from_version: int | None, to_version: int | None, limit: int
    ) -> list[CommitRecord]:
        """Newest first, both ends included; fewer than `limit` where they hold `DETAILS_BYTES`."""

    async def state_at(
        self, table_id: str, version: int, *, most_bytes: int | None = None
    ) -> ReadState | None:
        """As of a section. More than `core.ports.records.LONG_METADATA` is for those who have a
        turn at it (`core.tables.lookup`)."""

    async def is_used(self, table_id: str, transaction_id: str) -> bool:
        """Whether a commit has landed by this id, or it was aborted, as far as is committed here: a
        caller is told by a section."""

    async def version_at(self, table_id: str, timestamp_ms: int) -> int | None:
        """The latest version whose timestamp is at or before the given one."""

    def files(self, table_id: str, version: int) -> AsyncIterator[Sequence[Add]]:
        """The files live at a version, in batches, ordered by path."""

    def stored_files(
        self, table_id: str, version: int, wanted: Wanted
    ) -> AsyncIterator[StoredFiles]:
        """The wanted files live at a version, in batches: all ordered by path, or the partitions
        one after the other. Raises `NotFound` like `files`."""

    async def file_counts(self, table_id: str, first: int, last: int) -> Mapping[int, FileCounts]:
        """How many files each of these versions opened and closed; none for a missing one."""

    async def compare(
        self, table_id: str, version: int, actions: Sequence[Action], *, threads: Share
    ) -> Comparison:
        """What the index's rows have of a version against its actions, or a batch of them, which
        the caller's share of threads goes through."""

    async def compare_head(self, table_id: str) -> Comparison:
        """Where the table's own row is not what its rows sum up to, without counts."""

    async def unpublished(self, *, limit: int) -> list[TableRecord]:
        """Active catalog-managed tables whose log lags behind the index, without their protocol and
        metadata, which may be megabytes, and which publishing does not need."""

    async def unpublished_versions(
        self, table_id: str, *, limit: int, at_once: bool = False
    ) -> Waiting:
        """The first versions that wait for publishing: at most `limit`, and fewer where they are
        large, but one where any waits. None of a table that is not active. `at_once`, here and
        of the two calls behind it, says that a caller waits: else what many tables ask is kept
        until it is worth a transaction.

        A synchronous standby has them: who puts one into the log that it lacks would put it in the
        place of what is ratified where the standby takes over. Raises `IndexUnavailable` where it
        does not answer, and `StorageUnavailable` where too much of other large versions is held to
        hold another one."""

    async def mark_published(
        self,
        table_id: str,
        first: int,
        last: int,
        *,
        database: str | None = None,
        at_once: bool = False,
    ) -> None:
        """Move `published_version` to `last`: the log holds the versions from `first` on, and all
        before `first` were published. Idempotent for what is behind the published version. The
        inline content stays until `forget_content`. Raises `IndexUnavailable` where `database`,
        from which they were read, is not the one that would be told: its versions may be others."""

    async def forget_content(self, table_id: str, *, through: int, at_once: bool = False) -> None:
        """Drop inline content of versions at or below both `through` and the published one."""

    async def ping(self) -> None:
        """Raise `IndexUnavailable` unless the database answers."""
