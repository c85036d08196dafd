"""Comparing what the index holds of a table with its log in storage.

Of each version, the bytes in the log, the bytes that the index keeps and the digest in the
version's row must be the same, and the index's rows must be what the actions in these bytes make.
By induction that proves every snapshot. The newest checkpoint, which other readers start from, must
have the files that the index has at its version. Version checksums, whoever wrote them, must say
what the index says. Nothing is locked and nothing is written. Commits that land meanwhile are left
to the next call.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TypeVar

from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.actions import Action
from tidegate_protocol.log.content import Content, LogFile, sha256_of
from tidegate_protocol.log.segment import (
    BrokenLog,
    Checkpoint,
    Listing,
    LogSegment,
    choose_segment,
)
from tidegate_protocol.replay.commits import UnreadableCommit, parse_commit
from tidegate_service.core.context import Context
from tidegate_service.core.errors import IndexUnavailable, NotFound, Refused
from tidegate_service.core.log.files.checkpoint_stream import snapshot_actions
from tidegate_service.core.log.files.file_set import FileSet
from tidegate_service.core.log.files.listing import listed
from tidegate_service.core.maintenance.verify_checksums import checksum_differences
from tidegate_service.core.observe.telemetry import UpkeepKind
from tidegate_service.core.ports.files.comparison import Comparison, FileCounts
from tidegate_service.core.ports.records import CommitRecord, TableHead
from tidegate_service.core.ports.store.storage import Log, UnreadableFile
from tidegate_service.core.sharing import offload
from tidegate_service.core.tables.lookup import get_head

SMALL_BYTES = 64 * 1024
"""Contents that are larger are looked at in threads."""
PAGE_S = 10.0
"""How long one call goes on taking further versions, in seconds."""

T = TypeVar("T")
C = TypeVar("C", bound=Content)


class DifferenceKind(StrEnum):
    """Where the difference lies: in the log's files, in the bytes that the index keeps, or in
    its rows. What others wrote may break the protocol, the same in all three."""

    LOG = "log"
    STORAGE = "storage"
    CONTENT = "content"
    INDEX = "index"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """`version` is None where it concerns the table as a whole."""

    version: int | None
    kind: DifferenceKind
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Versions `from_version .. through_version` were compared; `next_version` is where to go
    on, None at the end. `cleaned_up` of them are gone from the log, below a checkpoint.
    `not_ingested` versions lie in the log beyond a plain table's head: the next read takes
    them in."""

    table: TableHead
    from_version: int
    through_version: int
    next_version: int | None
    cleaned_up: int
    not_ingested: int
    differences: tuple[Difference, ...]


async def verify_table(
    context: Context, ref: str, *, from_version: int | None = None, limit: int = 1000
) -> Verification:
    """Compare up to `limit` versions from `from_version` on (default: the index's first), as
    many as fit in the time of one call.

    Raises `NotFound` for the table, `Refused` for a version that it does not have, and
    `Unavailable` where the index or the store cannot be asked.
    """
    table = await get_head(context, ref)
    first = table.first_version if from_version is None else from_version
    if not table.first_version <= first <= table.latest_version:
        raise Refused(
            f"from_version {first} is not a version that the index holds of {table.name}: "
            f"expected {table.first_version} to {table.latest_version}",
            code=Code.INVALID_REQUEST,
        )
    async with context.verifying.turn(context.caller.principal.name):
        return await _Page(context, table, first, limit).verified()


class _Page:
    def __init__(self, context: Context, table: TableHead, first: int, limit: int) -> None:
        self._context = context
        self._index = context.index
        self._table = table
        self._log: Log = context.storage.log(table.location, who=context.who)
        self._first = first
        self._last = min(table.latest_version, first + limit - 1)
        self._differences: list[Difference] = []
        self._untold = 0
        self._cleaned_up = 0
        self._was_cut = False
        self._threads = context.verify_threads.of(context.caller.name)

    async def verified(self) -> Verification:
        standing = await self._context.upkeep.standing(self._table.id)
        cut = standing.get(UpkeepKind.EXPIRED_VERSIONS)
        self._was_cut = cut is not None and cut.version >= 0
        until = self._context.monotonic_s() + PAGE_S
        commits, checksums, segment = await self._listed()
        counts = await self._index.file_counts(self._table.id, self._first, self._last)
        version = self._first
        while True:
            await self._version(version, commits, segment, counts.get(version, FileCounts(0, 0)))
            if version == self._last or self._context.monotonic_s() > until:
                break
            version += 1
        if segment is not None:
            await self._snapshot(segment.newest or segment.checkpoint, through=version)
        compared = [each for each in checksums if self._first <= each <= version]
        async for of, detail in checksum_differences(self._context, self._table, compared):
            self._found(of, DifferenceKind.STORAGE, detail)
        if version == self._table.latest_version:
            self._compared(None, await self._index.compare_head(self._table.id))
        head = await self._head()
        beyond = await offload.run(len(commits), _beyond, commits, head)
        if beyond and not self._table.kind.log_first:
            self._found(
                None,
                DifferenceKind.STORAGE,
                f"{beyond} versions lie in the log beyond the head, {head}",
            )
            # Nothing is to be read in from there.
            beyond = 0
        return Verification(
            table=self._table,
            from_version=self._first,
            through_version=version,
            next_version=version + 1 if version < self._table.latest_version else None,
            cleaned_up=self._cleaned_up,
            not_ingested=beyond,
            differences=self._told(),
        )

    async def _head(self) -> int:
        """The table's latest version now, since the log has the commits that landed since the table
        was looked up, too."""
        now = await get_head(self._context, self._table.id)
        if now.epoch != self._table.epoch or now.first_version > self._first:
            raise IndexUnavailable(
                f"the index of table {now.name} was made anew, or cut, while it was compared; ask "
                "again"
            )
        return now.latest_version

    async def _listed(self) -> tuple[set[int], set[int], LogSegment | None]:
        """The versions that have commits, those that have checksums, and what to read."""
        files = Listing()
        try:
            files = await listed(self._log)
            # The index may not have been made from the oldest base.
            choose = partial(choose_segment, files, least=self._table.first_version)
            segment = await offload.run(len(files), choose)
        except BrokenLog as error:
            if self._table.published_version >= 0:
                self._found(None, DifferenceKind.STORAGE, f"the log cannot be read: {error}")
            return files.commits, files.checksums, None
        return files.commits, files.checksums, segment

    async def _version(
        self, version: int, commits: set[int], segment: LogSegment | None, counts: FileCounts
    ) -> None:
        record = await self._index.commit(self._table.id, version)
        if record is None:
            self._found(version, DifferenceKind.INDEX, "it has no row")
            return
        stored = await self._stored(record, commits, segment)
        kept = await self._index.stored_content(self._table.id, version)
        if kept is None and record.content_sha256 is not None:
            self._found(version, DifferenceKind.CONTENT, "the index does not keep its bytes")
        if kept is not None:
            await self._same(kept, record, DifferenceKind.CONTENT, "the bytes kept for it")
        if version == self._table.first_version and version > 0:
            base = None if segment is None else segment.checkpoint
            if base is not None and base.version == version:
                await self._base(base, counts)
            if not self._was_cut:
                return
        content = kept if stored is None else stored
        # Other bytes than the commit's say nothing of the commit's rows.
        if content is not None and await self._digest(content) == record.content_sha256:
            try:
                actions = await self._off_loop(content, parse_commit)
            except UnreadableCommit as error:
                self._found(version, DifferenceKind.CONTENT, f"it cannot be read: {error}")
                return
            await self._rows(version, _once(actions), counts)

    async def _stored(
        self, record: CommitRecord, commits: set[int], segment: LogSegment | None
    ) -> bytes | LogFile | None:
        version = record.version
        stored = await self._log.read(version) if version in commits else None
        if stored is not None and record.content_sha256 is not None:
            await self._same(stored, record, DifferenceKind.STORAGE, "its file")
            return stored
        if version <= self._table.published_version and stored is None:
            if segment is not None and version < segment.replayed.start:
                self._cleaned_up += 1
            elif segment is not None:
                self._found(version, DifferenceKind.STORAGE, "its file is missing from the log")
        return stored

    async def _same(
        self, content: Content, record: CommitRecord, kind: DifferenceKind, what: str
    ) -> None:
        found = await self._digest(content)
        if found != record.content_sha256:
            self._found(
                record.version,
                kind,
                f"{what} differ from what was committed: expected SHA-256 "
                f"{record.content_sha256}, found {found} ({len(content)} bytes)",
            )

    async def _digest(self, content: Content) -> str:
        return await self._off_loop(content, sha256_of)

    async def _off_loop(self, content: C, work: Callable[[C], T]) -> T:
        """What the work makes of the content; of a large one in a thread, in the caller's turn."""
        if len(content) <= SMALL_BYTES:
            return work(content)
        return await self._threads.run(work, content)

    async def _base(self, checkpoint: Checkpoint, counts: FileCounts) -> None:
        """Compare the first version of a table whose log starts with a checkpoint. Where the log
        starts with a later checkpoint by now, nothing is left to compare it with. Where the index
        was cut at this version, the rows are what the commits before have made."""
        version = checkpoint.version
        if self._was_cut:
            await self._files_of(checkpoint)
            return
        try:
            await self._rows(
                version,
                snapshot_actions(self._log, checkpoint, location=self._table.location),
                counts,
            )
        except UnreadableFile as error:
            self._found(version, DifferenceKind.STORAGE, f"its checkpoint cannot be read: {error}")

    async def _snapshot(self, newest: Checkpoint | None, *, through: int) -> None:
        """Compare the files of the newest checkpoint, if its version is of this page. `_base`
        compares a checkpoint of the table's first version."""
        first = max(self._first, self._table.first_version + 1)
        if newest is not None and first <= newest.version <= through:
            await self._files_of(newest)

    async def _files_of(self, checkpoint: Checkpoint) -> None:
        table = self._table
        theirs, ours = FileSet(), FileSet()
        try:
            async for batch in snapshot_actions(self._log, checkpoint, location=table.location):
                await theirs.count(batch)
            async for files in self._index.files(table.id, checkpoint.version):
                await ours.count(files)
        except UnreadableFile as error:
            detail = f"its checkpoint cannot be read: {error}"
            self._found(checkpoint.version, DifferenceKind.STORAGE, detail)
        except NotFound:
            # The index was made anew meanwhile: `_head` raises that.
            return
        else:
            if theirs != ours:
                self._found(
                    checkpoint.version,
                    DifferenceKind.INDEX,
                    f"its checkpoint has {theirs.number} files, and the index has "
                    f"{ours.number} that are not the same: readers of the log see another table",
                )

    async def _rows(
        self, version: int, batches: AsyncIterator[Sequence[Action]], counts: FileCounts
    ) -> None:
        opened, closed = 0, 0
        async for actions in batches:
            compared = await self._index.compare(
                self._table.id, version, actions, threads=self._threads
            )
            self._compared(version, compared)
            opened += compared.counts.opened
            closed += compared.counts.closed
        if counts.opened != opened:
            self._found(
                version,
                DifferenceKind.INDEX,
                f"expected it to add {opened} files, found {counts.opened}",
            )
        if counts.closed != closed:
            self._found(
                version,
                DifferenceKind.INDEX,
                f"{counts.closed} files ended with it, {closed} of which its actions name",
            )

    def _compared(self, version: int | None, compared: Comparison) -> None:
        for detail in compared.differences:
            self._found(version, DifferenceKind.INDEX, detail)
        # Where the index begins, files may have left it.
        for detail in compared.broken if version != self._table.first_version else ():
            self._found(version, DifferenceKind.LOG, detail)

    def _found(self, version: int | None, kind: DifferenceKind, detail: str) -> None:
        if len(self._differences) == self._context.limits.told_differences:
            self._untold += 1
            return
        self._differences.append(Difference(version=version, kind=kind, detail=detail))

    def _told(self) -> tuple[Difference, ...]:
        if not self._untold:
            return tuple(self._differences)
        more = f"{self._untold} differences of versions {self._first} and later are not listed here"
        rest = Difference(version=None, kind=self._differences[-1].kind, detail=more)
        return (*self._differences, rest)


def _beyond(commits: set[int], head: int) -> int:
    return sum(version > head for version in commits)


async def _once(actions: Sequence[Action]) -> AsyncIterator[Sequence[Action]]:
    yield actions
