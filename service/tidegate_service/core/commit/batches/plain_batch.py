"""A plain table's commits: each is the put-if-absent of its file, under the table's row lock.

The index rows follow. The log is the truth, and others may write past the service: the PUT finds
out whether the log has a version that the index does not know yet.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tidegate_protocol.proposal.transaction import Proposal, ReadyCommit
from tidegate_service.core.commit.batches.abort_fence import fence, recheck_aborted, take_next
from tidegate_service.core.commit.batches.buffered_puts import BufferedPuts
from tidegate_service.core.commit.batches.table_batch import TableBatch, untaken
from tidegate_service.core.context import Context
from tidegate_service.core.errors import CommitStateUnknown, StorageUnavailable
from tidegate_service.core.log.catching_up.foreign_commits import see_end, take_found
from tidegate_service.core.log.catching_up.sight import Behind, SeenBefore
from tidegate_service.core.log.put_version import occupy
from tidegate_service.core.maintenance.truncation import reload_if_truncated
from tidegate_service.core.observe.faults import Step, around
from tidegate_service.core.observe.telemetry import Phase
from tidegate_service.core.ports.index import CommitGroup, CommitSection, FilesFirst
from tidegate_service.core.ports.outcomes import Committed
from tidegate_service.core.ports.records import Aborted, CommitRecord, RatifiedCommit
from tidegate_service.core.ports.store.storage import DatedFile, Log


class PlainBatch(TableBatch):
    """Puts each file before its commit's rows are saved, and a group's small files together."""

    def __init__(self, context: Context, section: CommitSection, *, shared: bool) -> None:
        super().__init__(context, section, shared=shared)
        self._storage = context.storage
        self._who = context.who
        self._opened: Log | None = None
        self._files = BufferedPuts(self.locked, context.limits)
        self._others_wait = False
        self._taken = 0
        self._files_a_write = context.limits.files_a_write
        self._is_checked_further = False

    @property
    def _log(self) -> Log:
        if self._opened is None:
            self._opened = self._storage.log(self.section.table.location, who=self._who)
        return self._opened

    @staticmethod
    async def record(context: Context, group: CommitGroup, batches: Sequence[TableBatch]) -> None:
        """Save the rows. The commits are in the log already."""
        await group.save()

    @staticmethod
    async def read_in(context: Context, section: CommitSection, sight: SeenBefore) -> bool:
        await reload_if_truncated(context, section, sight)
        see_end(section, sight)
        # What a foreign writer committed is saved where it is read in.
        return False

    @staticmethod
    async def shut_out(
        context: Context,
        section: CommitSection,
        sight: SeenBefore,
        transaction_id: str,
        known: CommitRecord | Aborted | None,
    ) -> CommitRecord | Aborted | None:
        # A commit under this id may lie in the log without its index rows, or may yet get there.
        before = section.table
        try:
            return await fence(context, section, sight, transaction_id)
        except Behind:
            if section.table != before:
                await section.save()
            raise

    @staticmethod
    def is_undone_by(error: Exception) -> bool:
        # The file may be there already, whatever the index says.
        return False

    @property
    def buffered(self) -> int:
        return len(self._files)

    @property
    def is_full(self) -> bool:
        return self._files.is_full

    @property
    def in_doubt(self) -> int:
        return self._files.in_doubt

    def expect_more(self, others_wait: bool) -> None:
        self._others_wait = others_wait

    async def put_files(self, context: Context) -> int:
        return await self._files.put(context, self._log)

    def write_ahead(self) -> None:
        self._taken += 1
        if self._taken % self._files_a_write == 0:
            self.section.write_ahead()

    async def _append(self, ready: ReadyCommit, commit: RatifiedCommit) -> None:
        if self._may_wait(ready):
            # Only now: an error before this leaves no file of the commit behind.
            self._files.add(ready)
        try:
            await self.locked.append(commit)
        except FilesFirst:
            self._files.drop(ready)
            raise
        except Exception as error:
            if self._files.drop(ready):
                raise
            # The file is there already, although the index refused the commit.
            raise untaken(error, ready.transaction.proposal.transaction_id) from error

    async def _looked_up(self, context: Context, proposal: Proposal) -> Committed | None:
        try:
            self._ingested(await recheck_aborted(context, self.section, self.sight, proposal))
        except Behind:
            if self.buffered:
                raise FilesFirst from None
            raise
        return await super()._looked_up(context, proposal)

    async def _check_further(self, context: Context, proposal: Proposal) -> None:
        section = self.section
        async with around(context.faults, Step.O3_PROBE):
            if self.buffered and reads_ahead(section, proposal):
                raise FilesFirst
            # Once a section is enough: the next section checks the log again where that is due.
            if not self._is_checked_further:
                await reload_if_truncated(context, section, self.sight)
                self._is_checked_further = True
            if reads_ahead(section, proposal):
                see_end(section, self.sight)

    async def _is_its_own(self, context: Context, ready: ReadyCommit) -> bool:
        if self._may_wait(ready):
            return True
        if self.buffered:
            raise FilesFirst
        began_s = context.monotonic_s()
        found = await self._put(context, ready)
        if found is not None:
            await self._take(context, found, began_s)
        return found is None

    async def _is_at_end(self, context: Context, proposal: Proposal, *, fences: bool) -> bool:
        if self.buffered:
            raise FilesFirst
        if not fences:
            see_end(self.section, self.sight)
            return True
        began_s = context.monotonic_s()
        with self._stopping():
            found = await take_next(context, self.locked, self._log, proposal.transaction_id)
        self.must_save = True
        if found is not None:
            await self._take(context, found, began_s)
        return found is None

    async def _take(self, context: Context, found: DatedFile, began_s: float) -> None:
        self.must_save = True
        await take_found(
            self.section,
            found,
            began_s=began_s,
            now_s=context.monotonic_s(),
            race_s=context.limits.race_s,
            to=self.locked,
        )

    def _may_wait(self, ready: ReadyCommit) -> bool:
        """Whether the commit's file is buffered, to be put with others."""
        return (self.buffered > 0 or self._others_wait) and self._files.takes(ready)

    async def _put(self, context: Context, ready: ReadyCommit) -> DatedFile | None:
        # The row lock keeps this service's own writers from racing each other for the version.
        with self._stopping(), context.telemetry.phase(Phase.PUT):
            return await occupy(self._log, ready, context.limits, faults=context.faults)

    @contextmanager
    def _stopping(self) -> Iterator[None]:
        try:
            yield
        except (CommitStateUnknown, StorageUnavailable):
            self.is_stopped = True
            raise

    def _ingested(self, count: int) -> None:
        self.must_save |= bool(count)


def reads_ahead(section: CommitSection, proposal: Proposal) -> bool:
    """Whether the proposal read a version that the index does not know yet, as a writer that reads
    the log itself may."""
    read_version = proposal.read_version
    return read_version is not None and read_version > section.table.latest_version
