"""Reading a log that somebody else wrote into the index, from its oldest version on.

Everything happens in the section that makes the table: a log that cannot be read to its end leaves
nothing in the index.
"""

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial

from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.actions import Action, Add, AddCDCFile, Metadata, Remove, file_key
from tidegate_protocol.log.content import LogFile
from tidegate_protocol.log.file_names import commit_name
from tidegate_protocol.log.segment import (
    BrokenLog,
    Checkpoint,
    Listing,
    LogSegment,
    choose_segment,
    versions_left,
)
from tidegate_protocol.proposal.transaction import Invalid
from tidegate_protocol.replay.commits import UnreadableCommit
from tidegate_protocol.replay.foreign import RefusedCommit, in_commit_timestamp, refusal
from tidegate_service.core.errors import Refused, StorageUnavailable
from tidegate_service.core.log.catching_up.foreign_commits import (
    append_foreign,
    carried,
    foreign_commit,
    keep_id,
)
from tidegate_service.core.log.catching_up.versions import contents
from tidegate_service.core.log.files.checkpoint_stream import snapshot_actions
from tidegate_service.core.log.loading.bases import BaseRefused
from tidegate_service.core.log.loading.beginning import Beginning
from tidegate_service.core.log.loading.data_paths import DataPaths
from tidegate_service.core.log.loading.file_times import FileTimes
from tidegate_service.core.log.loading.reading_time import ReadingTime
from tidegate_service.core.ports.index import CommitSection
from tidegate_service.core.ports.records import CommitMetrics, CommitRecord, RatifiedCommit
from tidegate_service.core.ports.store.listing import LogEntry
from tidegate_service.core.ports.store.storage import LogReader, UnreadableFile
from tidegate_service.core.sharing import offload

_IN_COMMIT = b'"inCommitTimestamp"'
MOST_OUTSIDE = 1_000
"""So many live files may lie where they must not: later versions of the log may yet remove them."""


async def adopt(
    section: CommitSection,
    log: LogReader,
    paths: DataPaths,
    time: ReadingTime,
    *,
    least: int = 0,
    through: int | None = None,
) -> LogSegment:
    """Read the log of the section's table, which has no version yet, to its end; with `through`, to
    that version, since later ones are no part of the table. Checkpoints of versions before `least`
    are passed over. Returns what was read. Of the versions before the base, only the ids are kept.

    The caller saves the section. Raises `Refused`: `broken-log` where the log cannot be read,
    `BaseRefused` where it may be read from a later base, `unsupported-feature` where the log needs
    a feature that is not supported, `invalid-path` where it names a file that it must not. Raises
    `IndexUnavailable` where `time` is over.
    """
    await section.take_time()
    try:
        segment, newest, times = await _listed(section, log, time, least, through)
        adoption = _Adoption(section, log, paths, time, times, Beginning(time.limits))
        if segment.checkpoint is not None:
            try:
                await adoption.start_from(segment.checkpoint)
            except UnreadableFile as error:
                if segment.checkpoint.version == newest:
                    raise
                raise BaseRefused(_unread(error), version=segment.checkpoint.version) from error
            await adoption.keep_ids(segment.older)
        async with aclosing(contents(log, segment.replayed)) as commits:
            async for version, content in commits:
                await adoption.replay(version, content)
                if segment.newest is not None and segment.newest.version == version:
                    await adoption.compare(segment.newest)
        await adoption.catch_up(through)
        await adoption.date()
        adoption.check_paths()
        return segment
    except RefusedCommit as error:
        raise _refused(error.refusal) from error
    except (BrokenLog, UnreadableCommit, UnreadableFile) as error:
        raise Refused(_unread(error), code=Code.BROKEN_LOG) from error


async def _listed(
    section: CommitSection, log: LogReader, time: ReadingTime, least: int, through: int | None
) -> tuple[LogSegment, int, FileTimes]:
    """What of the log is read, the version of the newest checkpoint in it, also if that is after
    `through`, and the times of its files. The listing goes: the rest may take half an hour."""
    files, times = Listing(), FileTimes()

    def take(entries: Sequence[LogEntry]) -> None:
        files.take((entry.name, entry.size) for entry in entries)
        times.take(entries)

    def choose() -> tuple[LogSegment, int]:
        segment = choose_segment(files, least=least, through=through)
        times.choose(segment.checkpoint)
        _, newest = versions_left(files)
        return segment, newest

    async for entries in log.entries():
        time.actions()
        if files:
            await section.take_time()
        await offload.run(offload.HEAVY if files else 0, take, entries)
    return *await offload.run(len(files), choose), times


def _unread(error: Exception) -> str:
    return f"the log cannot be read: {error}"


@dataclass(slots=True)
class _Adoption:
    """`before` is the snapshot of the commits so far, until it has the protocol and metadata that a
    table needs. `out_of_order` says that a version is dated before one that it follows. `outside`
    holds the live files that the log must not name, each with the refusal."""

    section: CommitSection
    log: LogReader
    paths: DataPaths
    time: ReadingTime
    times: FileTimes
    before: Beginning
    in_commit: bool = False
    out_of_order: bool = False
    outside: dict[tuple[str, str | None], Refused] = field(default_factory=dict)

    async def start_from(self, checkpoint: Checkpoint) -> None:
        """Make the checkpoint's version the table's first."""
        version = checkpoint.version
        content = await self.log.read(version)
        if content is None:
            commit = _unknown_commit(version, timestamp=self.times.of_checkpoint(checkpoint))
        else:
            known = None
            if not isinstance(content, bytes) or _IN_COMMIT in content:
                # The table's properties decide whether this timestamp is the version's date.
                known = await self._metadata_of(checkpoint)
            modified_ms = self.times.of_commit(version)
            commit = await self._commit(version, content, modified_ms, before=known)
        await self.section.load_base(commit, self._checked(checkpoint))

    async def _metadata_of(self, checkpoint: Checkpoint) -> Metadata | None:
        batches = snapshot_actions(self.log, checkpoint, location=self.paths.location)
        async with aclosing(batches):
            async for batch in batches:
                self.time.actions(len(batch))
                for action in batch:
                    if isinstance(action, Metadata):
                        return action
        return None

    async def keep_ids(self, versions: Iterable[int]) -> None:
        """Keep the transaction ids of versions before the first one. A new index knows them from
        nowhere else."""
        async with aclosing(contents(self.log, versions)) as commits:
            async for version, content in commits:
                self.time.version()
                if content is not None:
                    await keep_id(self.section, version, content)

    async def _checked(self, checkpoint: Checkpoint) -> AsyncIterator[Sequence[Action]]:
        async for batch in snapshot_actions(self.log, checkpoint, location=self.paths.location):
            self.time.actions(len(batch))
            # Rows of a checkpoint may have megabytes, and parsing what they define takes long.
            await offload.run(offload.HEAVY, self._check, batch)
            yield batch

    def _check(self, batch: Sequence[Action]) -> None:
        self._record_paths(batch)
        for action in batch:
            refused = refusal(action, catalog_managed=self.section.table.catalog_managed)
            if refused is not None:
                raise _refused(refused)

    async def replay(self, version: int, content: bytes | LogFile | None) -> None:
        """Read in a version that was in the listing."""
        if content is None:
            raise StorageUnavailable(
                f"{commit_name(version)} went away while the log was read; it can be tried again"
            )
        await self._append(version, content, self.times.of_commit(version))

    async def catch_up(self, through: int | None) -> None:
        """Read the versions committed meanwhile. Raises `BrokenLog` where there is no table yet."""
        while self._started and (through is None or self._next <= through):
            found = await self.log.read_dated(self._next)
            if found is None:
                break
            await self._append(self._next, found.content, found.modified_ms)
        if not self._started:
            missing = "protocol" if self.before.protocol is None else "metaData"
            raise BrokenLog(f"no version of it has a {missing} action")

    @property
    def _started(self) -> bool:
        return self.section.table.latest_version >= 0

    @property
    def _next(self) -> int:
        return self.section.table.latest_version + 1

    async def _append(
        self, version: int, content: bytes | LogFile, modified_ms: int | None
    ) -> None:
        try:
            commit = await self._commit(version, content, modified_ms)
        except RefusedCommit:
            raise
        except UnreadableCommit as error:
            raise UnreadableCommit(f"{commit_name(version)}: {error}") from None
        self.time.version(len(commit.actions))
        await offload.run(commit.weight, self._record_paths, commit.actions)
        if self._started:
            await append_foreign(self.section, commit)
            return
        await offload.run(len(commit.actions), self.before.take, commit.actions)
        if self.before.protocol is None or self.before.metadata is None:
            self.before.count(len(commit.actions), len(content))
            return
        if version == 0:
            await append_foreign(self.section, commit)
        else:
            await self.section.load_base(commit, _in_turn(self.before.portions()))
        self.before = Beginning(self.time.limits)

    async def date(self) -> None:
        """Date versions back that are not dated before the versions behind them. This is done once
        for all versions, since each version of a log may be dated before its predecessor."""
        if self.out_of_order:
            await self.section.date_in_order()

    def check_paths(self) -> None:
        """Raise `Refused` where the newest version names a file that it must not name. Earlier
        versions may name such files: scans of them are refused (`core.tables.scan`)."""
        for refused in self.outside.values():
            raise refused

    def _record_paths(self, actions: Iterable[Action]) -> None:
        for action in actions:
            if isinstance(action, Remove):
                self.outside.pop(file_key(action), None)
            elif isinstance(action, Add):
                try:
                    self.paths.check(action)
                except Refused as refused:
                    if len(self.outside) == MOST_OUTSIDE:
                        raise
                    self.outside[file_key(action)] = refused.with_traceback(None)
            elif isinstance(action, AddCDCFile):
                # No later version takes one away: change data are read version by version.
                self.paths.check_change_data(action)

    async def _commit(
        self,
        version: int,
        content: bytes | LogFile,
        modified_ms: int | None,
        *,
        before: Metadata | None = None,
    ) -> RatifiedCommit:
        """The commit, dated as Delta dates it: by its in-commit timestamp where these are on, else
        by its file's time. A commit of this service keeps the timestamp that clients were told."""
        commit = await foreign_commit(self.section, version, content, modified_ms=modified_ms)
        known = before or self.section.table.metadata or self.before.metadata
        dated = partial(in_commit_timestamp, version, commit.actions, before=known)
        timestamp = in_commit = await offload.run(len(commit.actions), dated)
        if timestamp is None:
            if commit.record.foreign:
                return commit
            timestamp = await carried(commit)
        latest = self.section.table.latest_timestamp
        if not self.in_commit and timestamp <= latest:
            # A copied log's files are younger than the commits in them.
            self.out_of_order = True
            latest = timestamp - 1
        self.in_commit = self.in_commit or in_commit is not None
        return replace(commit, record=replace(commit.record, timestamp=max(timestamp, latest + 1)))

    async def compare(self, checkpoint: Checkpoint) -> None:
        """Raise `BrokenLog` where the checkpoint that other readers start from has another number
        of files than the commits up to it."""
        count = 0
        async for batch in snapshot_actions(self.log, checkpoint, location=self.paths.location):
            self.time.actions(len(batch))
            count += sum(isinstance(action, Add) for action in batch)
            await self.section.take_time()
        table = self.section.table
        if self._started and count != table.num_files:
            raise BrokenLog(
                f"the checkpoint of version {checkpoint.version} has {count} files, and the "
                f"commits up to it make {table.num_files}"
            )


async def _in_turn(portions: Iterator[Sequence[Action]]) -> AsyncIterator[Sequence[Action]]:
    for portion in portions:
        yield portion


def _unknown_commit(version: int, *, timestamp: int) -> RatifiedCommit:
    """The commit of a version of which only a checkpoint is left."""
    record = CommitRecord(
        version=version,
        timestamp=timestamp,
        transaction_id=None,
        body_digest=None,
        content_sha256=None,
        operation=None,
        isolation_level=None,
        is_blind_append=False,
        read_version=None,
        rebased_over=0,
        engine_info=None,
        user_metadata=None,
        foreign=True,
        metrics=CommitMetrics(
            num_added_files=0,
            num_removed_files=0,
            bytes_added=0,
            bytes_removed=0,
            attempts=1,
            duration_ms=0,
        ),
    )
    return RatifiedCommit(record=record, actions=(), content=None, published=True)


def _refused(refused: Invalid) -> Refused:
    if refused.code is Code.UNSUPPORTED_FEATURE:
        return Refused(refused.detail, code=refused.code)
    return Refused(f"the log cannot be read: {refused.detail}", code=Code.BROKEN_LOG)
