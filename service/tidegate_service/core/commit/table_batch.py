"""One table of a group: its proposals, one after the other, each decided behind the one before.

The decision is a function of the proposal and the log alone, so whenever the log turns out to be
longer than the index knew, the whole decision is taken again.
"""

from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from functools import partial

from tidegate_protocol.base.problems import Code
from tidegate_protocol.proposal.transaction import Conflict, Invalid, Proposal, ReadyCommit
from tidegate_service.core.catalog_managed.set_back import look
from tidegate_service.core.commit.abort_fence import (
    Refusal,
    close,
    doubt_tombstone,
    is_final,
    is_of_the_head,
    is_settled,
    take_next,
)
from tidegate_service.core.commit.buffered_puts import MOST_FILES, BufferedPuts
from tidegate_service.core.commit.decide import Decision, Empty, decide
from tidegate_service.core.commit.locked_table import LockedTable
from tidegate_service.core.commit.replays import landed_before
from tidegate_service.core.commit.waiting_proposal import WaitingProposal
from tidegate_service.core.context import Context
from tidegate_service.core.errors import (
    CommitStateUnknown,
    Refused,
    StorageUnavailable,
    Unavailable,
)
from tidegate_service.core.log.clock_skew import check_clock
from tidegate_service.core.log.foreign_commits import MOST_RACES, Behind, ingest
from tidegate_service.core.log.put_version import PUT_ATTEMPTS, occupy, ratified
from tidegate_service.core.maintenance.truncation import reload_if_truncated
from tidegate_service.core.observe.faults import Step, around, steps_of
from tidegate_service.core.observe.telemetry import Phase
from tidegate_service.core.ports.index import (
    CommitGroup,
    CommitSection,
    FilesFirst,
    Log,
    PutResult,
    TakesLong,
)
from tidegate_service.core.ports.outcomes import Committed, NothingToCommit, Outcome
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.sharing import offload

WRITTEN_AHEAD = 16
"""So many files of a plain table are written before their rows begin to be."""


class TableBatch:
    """Lands proposals on a locked table. `must_save` says that something was written that has to
    be saved, `is_stopped` that the store did not answer, so that nobody else should try."""

    def __init__(self, context: Context, section: CommitSection, *, shared: bool) -> None:
        self.section = section
        self.locked = LockedTable(section, context.windows, shared=shared)
        self.must_save = False
        self.is_stopped = False
        self._is_revealed = False
        self._storage = context.storage
        self._who = context.who
        self._opened: Log | None = None
        self._taken = 0
        self._files = BufferedPuts(self.locked)
        self._others_wait = False
        self._steps = steps_of(section.table.catalog_managed)

    @property
    def _log(self) -> Log:
        if self._opened is None:
            self._opened = self._storage.log(self.section.table.location, who=self._who)
        return self._opened

    @property
    def holds(self) -> int:
        """How many commits were decided whose files are not there yet: their outcomes, and all
        that were decided behind them, hold only once `put_files` has put them there."""
        return len(self._files)

    def together(self, others_wait: bool) -> None:
        """Whether files may wait for those of others that are decided next."""
        self._others_wait = others_wait and not self.section.table.catalog_managed

    @property
    def is_full(self) -> bool:
        return self.holds >= MOST_FILES

    @property
    def in_doubt(self) -> int:
        """How many of the files that `put_files` did not put may be there all the same."""
        return self._files.in_doubt

    async def put_files(self, context: Context) -> int:
        """Put the files that wait; how many of their commits have none and are forgotten."""
        return await self._files.put(context, self._log)

    def write_ahead(self) -> None:
        """On a plain table, the index is written while the next file is: not for each one, since
        a few rows cost the database as much as one."""
        self._taken += 1
        if not self.section.table.catalog_managed and self._taken % WRITTEN_AHEAD == 0:
            self.section.write_ahead()

    async def land(self, member: WaitingProposal) -> Outcome:
        """The outcome, true once the section is saved. Raises what `propose` does, and `Behind`."""
        decisions = member.decisions
        try:
            outcome = await self._land(member)
        except Refused:
            # By an id's row, which says nothing of when it was written.
            self.must_save |= self.section.table.catalog_managed
            raise
        except (FilesFirst, TakesLong):
            # What was decided too early counts as not decided.
            member.decisions = decisions
            raise
        if isinstance(outcome, Conflict | Invalid):
            settled = await is_settled(member.context, self.section, member.proposal, outcome)
            self.must_save |= not settled
        return outcome

    async def _land(self, member: WaitingProposal) -> Outcome:
        context, proposal = member.context, member.proposal
        landed = await self._known(context, proposal)
        if landed is not None:
            # What is there to be read may wait for its standby yet, if its COMMIT was cut off. The
            # lock is a write, so a COMMIT of this section waits for all that came before.
            self.must_save |= self.section.table.catalog_managed
            return landed
        ready = await self._ready(member)
        if not isinstance(ready, ReadyCommit):
            return ready
        section = self.section
        commit = await offload.run(
            len(ready.actions),
            partial(
                ratified,
                ready,
                published=not section.table.catalog_managed,
                attempts=member.decisions,
                duration_ms=round((context.monotonic_s() - member.started) * 1000),
                by=context.caller,
            ),
        )
        self.must_save = True
        if self._may_wait(ready):
            # Not before: what goes wrong until here leaves no file of it behind.
            self._files.hold(ready)
        try:
            await self.locked.append(commit)
        except FilesFirst:
            raise
        except Exception as error:
            if self._files.forget(ready):
                raise
            if section.table.catalog_managed and not isinstance(error, Refused | Unavailable):
                raise
            # On a plain table the file is there already, whatever the index says to it.
            raise CommitStateUnknown(
                f"the index did not take what may have landed: {error}",
                transaction_id=proposal.transaction_id,
            ) from error
        return Committed(
            table=section.table, record=commit.record, published=commit.published, replayed=False
        )

    async def _known(self, context: Context, proposal: Proposal) -> Committed | None:
        """The first answer to the proposal's id, looked for wherever it may lie."""
        section, faults = self.section, context.faults
        async with around(faults, self._steps.look_up):
            self._ingested(await doubt_tombstone(context, section, proposal))
            landed = await landed_before(section, proposal)
        if landed is not None:
            return landed
        check_clock(context, section)
        if section.table.catalog_managed:
            _check_backlog(context, section.table)
            await look(context, section)
            return None
        async with around(faults, Step.O3_PROBE):
            # Once is enough: what this transaction lands on is too young to be cleaned up.
            if self.holds and reads_ahead(section, proposal):
                raise FilesFirst
            revealed = not self._is_revealed and await reload_if_truncated(
                context, section, self._log
            )
            self._is_revealed = True
            self._ingested(revealed)
            if not revealed and not reads_ahead(section, proposal):
                return None
            self._ingested(await ingest(section, self._log))
            return await landed_before(section, proposal)

    async def _ready(self, member: WaitingProposal) -> ReadyCommit | Outcome:
        """The proposal as the next version, which on a plain table lies in the log by now, or the
        outcome that it has instead."""
        context, proposal, section = member.context, member.proposal, self.section
        for _ in range(MOST_RACES):
            member.decisions += 1
            decision = await self._decision(context, proposal)
            if isinstance(decision, ReadyCommit):
                if section.table.catalog_managed or self._may_wait(decision):
                    return decision
                if self.holds:
                    raise FilesFirst
                if await self._put(context, decision):
                    return decision
                self._ingested(await ingest(section, self._log))
            elif await self._stands(context, proposal, decision, attempt=member.attempt):
                if isinstance(decision, Refused):
                    raise decision
                if isinstance(decision, Empty):
                    return nothing(section, proposal, decision)
                return decision
            landed = await landed_before(section, proposal)
            if landed is not None:
                return landed
        raise Behind

    async def _decision(self, context: Context, proposal: Proposal) -> Decision | Refused:
        with context.telemetry.phase(Phase.DECIDE):
            try:
                return await decide(self.locked, proposal, faults=context.faults)
            except Refused as refused:
                return refused

    async def _stands(
        self, context: Context, proposal: Proposal, refusal: Refusal, *, attempt: int
    ) -> bool:
        """Whether the refusal may be told: what the log holds to its end says the same, and where
        it says that the id never lands, nothing else can come of it any more
        (`core.commit.abort_fence`). False where the log goes on, to be decided anew. The reasons
        that no head changes cost nothing."""
        section = self.section
        if not await offload.run(len(proposal.actions), is_of_the_head, proposal, refusal):
            return True
        closes = is_final(refusal)
        if not section.table.catalog_managed:
            if self.holds:
                raise FilesFirst
            fences = closes and not (proposal.has_new_id and attempt == 1)
            if not await self._is_at_end(context, proposal, fences=fences):
                return False
        if closes:
            await close(context, section, proposal.transaction_id)
            self.must_save = True
        return True

    async def _is_at_end(self, context: Context, proposal: Proposal, *, fences: bool) -> bool:
        """Whether a plain table's log ends where the section does, which a fence finds out by
        itself; else it is read in."""
        if fences:
            with self._stopping():
                taken = await take_next(context, self.locked, self._log, proposal.transaction_id)
            if taken:
                self.must_save = True
                return True
        count = await ingest(self.section, self._log)
        self._ingested(count)
        return not fences and not count

    def _may_wait(self, ready: ReadyCommit) -> bool:
        """Whether its file is put with others'."""
        if self.section.table.catalog_managed:
            return False
        return (self.holds > 0 or self._others_wait) and self._files.takes(ready)

    async def _put(self, context: Context, ready: ReadyCommit) -> bool:
        # The one network call under the row lock: the lock is what keeps this service's own
        # writers from racing each other for the version.
        with self._stopping(), context.telemetry.phase(Phase.PUT):
            put = await occupy(self._log, ready, attempts=PUT_ATTEMPTS, faults=context.faults)
        return put is PutResult.CREATED

    @contextmanager
    def _stopping(self) -> Iterator[None]:
        try:
            yield
        except (CommitStateUnknown, StorageUnavailable):
            self.is_stopped = True
            raise

    def _ingested(self, count: int) -> None:
        self.must_save |= bool(count)


async def record(context: Context, group: CommitGroup, batches: Sequence[TableBatch]) -> None:
    """Write what landed, and save it. On a plain table it is in the log already."""
    plain = any(not batch.section.table.catalog_managed for batch in batches)
    async with AsyncExitStack() as steps:
        if plain:
            await steps.enter_async_context(around(context.faults, Step.O8_INDEX))
        else:
            async with around(context.faults, Step.M5_INSERT):
                for batch in batches:
                    await batch.section.flush()
            await steps.enter_async_context(around(context.faults, Step.M6_COMMIT))
        await group.save()


def _check_backlog(context: Context, table: TableRecord) -> None:
    behind = table.latest_version - table.published_version
    if behind >= context.max_unpublished_versions:
        raise Unavailable(
            f"{behind} versions of table {table.name} wait for publishing, as many as may; nothing "
            "was done",
            code=Code.BACKPRESSURE,
        )


def nothing(section: CommitSection, proposal: Proposal, empty: Empty) -> NothingToCommit:
    return NothingToCommit(
        table=section.table,
        transaction_id=proposal.transaction_id,
        read_version=empty.read_version,
    )


def reads_ahead(section: CommitSection, proposal: Proposal) -> bool:
    """A writer that reads the log itself can know a version before the index does."""
    read_version = proposal.read_version
    return read_version is not None and read_version > section.table.latest_version
