"""One table of a group: its proposals, each decided as if the one before had been committed.

The decision depends on the proposal and the log alone. So whenever the log turns out to be longer
than the index knew, the whole decision is made again.

`TableBatch` is the way that both kinds of table share. `core.commit.batches.plain_batch` and
`core.commit.batches.catalog_managed_batch` fill in the steps that differ.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial

from tidegate_protocol.proposal.transaction import Proposal, ReadyCommit
from tidegate_service.core.commit.decide import Decision, decide
from tidegate_service.core.commit.preparation import Empty
from tidegate_service.core.commit.queue.waiting_proposal import WaitingProposal
from tidegate_service.core.commit.refusals import Refusal, close, is_final, is_of_the_head
from tidegate_service.core.commit.replays import landed_before
from tidegate_service.core.context import Context
from tidegate_service.core.errors import CommitStateUnknown, Refused
from tidegate_service.core.instance.locked_table import LockedTable, ManyWinners
from tidegate_service.core.log.catching_up.foreign_commits import MOST_RACES
from tidegate_service.core.log.catching_up.sight import Behind, SeenBefore
from tidegate_service.core.log.clock_skew import check_clock
from tidegate_service.core.log.loading.places import misplaced
from tidegate_service.core.log.put_version import ratified
from tidegate_service.core.observe.faults import around
from tidegate_service.core.observe.telemetry import Phase
from tidegate_service.core.ports.index import CommitGroup, CommitSection, FilesFirst, TakesLong
from tidegate_service.core.ports.kinds import TableIdentity
from tidegate_service.core.ports.outcomes import Committed, NothingToCommit, Outcome, TableTotals
from tidegate_service.core.ports.records import Aborted, CommitRecord, RatifiedCommit
from tidegate_service.core.sharing import offload


class TableBatch(ABC):
    """Lands proposals on a locked table. `must_save` says that the section has to be saved.
    `is_stopped` says that the store did not answer, so that no further proposal should be tried.
    `sight` is the one of the member that is decided.

    Only a plain table has buffered files, and only a catalog-managed one a log that has to be
    checked. The defaults here are for the other kind.
    """

    def __init__(self, context: Context, section: CommitSection, *, shared: bool) -> None:
        self.section = section
        self.locked = LockedTable(section, context.windows, context.limits, shared=shared)
        self.must_save = False
        self.is_stopped = False
        self.sight = SeenBefore()

    @staticmethod
    @abstractmethod
    async def record(context: Context, group: CommitGroup, batches: Sequence["TableBatch"]) -> None:
        """Write the commits to tables of this kind into the index, and save them."""

    @staticmethod
    def needs_check(context: Context, section: CommitSection) -> bool:
        """Whether `check_log` may have to ask the store."""
        return False

    @staticmethod
    async def check_ahead(context: Context, table: TableIdentity, sight: SeenBefore) -> bool:
        """Whether the table's log had to be checked before its row is locked, and nothing was
        found."""
        return False

    @staticmethod
    async def check_log(context: Context, section: CommitSection, sight: SeenBefore) -> None:
        """See that the database has lost no version of the table. Raises `TableQuarantined`,
        `StorageUnavailable` and `Behind`."""
        return

    @staticmethod
    @abstractmethod
    async def read_in(context: Context, section: CommitSection, sight: SeenBefore) -> bool:
        """See that the section has what a conflict check must know. Returns whether the section has
        to be saved before the answer is told. Raises `Behind`, after saving what was read, and
        `Unavailable`."""

    @staticmethod
    @abstractmethod
    async def shut_out(
        context: Context,
        section: CommitSection,
        sight: SeenBefore,
        transaction_id: str,
        known: CommitRecord | Aborted | None,
    ) -> CommitRecord | Aborted | None:
        """See that no attempt under an open id can land any more. Returns what is known of the id
        then. The caller saves the section. Raises as `fence` and `check_log` do."""

    @staticmethod
    @abstractmethod
    def is_undone_by(error: Exception) -> bool:
        """Whether the error, by which saving a transaction with one commit failed, proves that the
        commit has not landed."""

    @property
    def buffered(self) -> int:
        """How many files are buffered. The outcomes of their commits, and all that were decided
        after them, are valid only once `put_files` has put the files."""
        return 0

    @property
    def is_full(self) -> bool:
        """Whether the buffered files have to be put before anything else is decided."""
        return False

    @property
    def in_doubt(self) -> int:
        """How many of the files that `put_files` did not put may be there all the same."""
        return 0

    def expect_more(self, others_wait: bool) -> None:
        """Say whether further members wait: then a file may be buffered, to be put with theirs."""
        return

    async def put_files(self, context: Context) -> int:
        """Put the buffered files. Returns how many commits were dropped since their files were not
        put."""
        return 0

    def write_ahead(self) -> None:
        """Send staged rows to the index, so that they are written beside the next file."""
        return

    def ended(self, context: Context) -> None:
        """Called once the group is over and its members were told."""
        return

    @property
    def totals(self) -> TableTotals:
        """What the table holds once the batch is saved."""
        table = self.section.table
        return TableTotals(
            version=table.latest_version, num_files=table.num_files, size_bytes=table.size_bytes
        )

    async def land(self, member: WaitingProposal) -> Outcome:
        """The outcome, true once the section is saved. Raises what `propose` does, and `Behind`."""
        decisions, self.sight = member.decisions, member.sight
        try:
            return await self._land(member)
        except (FilesFirst, TakesLong, ManyWinners):
            # A decision that was begun too early is not counted.
            member.decisions = decisions
            raise

    async def _land(self, member: WaitingProposal) -> Outcome:
        context, proposal = member.context, member.proposal
        landed = await self._known(context, proposal)
        if landed is not None:
            return landed
        ready = await self._ready(member)
        if not isinstance(ready, ReadyCommit):
            return ready
        commit = await offload.run(
            offload.weight_of(proposal),
            partial(
                ratified,
                ready,
                published=self.section.table.kind.log_first,
                attempts=member.decisions,
                duration_ms=round((context.monotonic_s() - member.started) * 1000),
                by=context.caller,
            ),
        )
        self.must_save = True
        await self._append(ready, commit)
        return Committed(
            table=self.section.table,
            record=commit.record,
            published=commit.published,
            replayed=False,
            database=self.section.database,
            check_ms=round(member.check_s * 1000),
        )

    @abstractmethod
    async def _append(self, ready: ReadyCommit, commit: RatifiedCommit) -> None:
        """Append the commit to the section. Raises `CommitStateUnknown` where the index did not
        take the commit but it may have landed."""

    async def _known(self, context: Context, proposal: Proposal) -> Committed | None:
        """The first answer to the proposal's id, looked for in the index and, where needed, in the
        log."""
        async with around(context.faults, self.section.table.kind.steps.look_up):
            landed = await self._looked_up(context, proposal)
        if landed is not None:
            return landed
        check_clock(context, self.section)
        await self._check_further(context, proposal)
        return None

    async def _looked_up(self, context: Context, proposal: Proposal) -> Committed | None:
        """The first answer, as far as the index knows."""
        return await landed_before(self.section, proposal)

    @abstractmethod
    async def _check_further(self, context: Context, proposal: Proposal) -> None:
        """Raise the reason why no new proposal to the table can be decided yet; `Behind` where the
        log may have versions that the index lacks."""

    async def _ready(self, member: WaitingProposal) -> ReadyCommit | Outcome:
        """The proposal as the next version, which is known to be this commit's, or the outcome that
        it has instead."""
        context, proposal, section = member.context, member.proposal, self.section
        for _ in range(MOST_RACES):
            member.decisions += 1
            decision = await self._decision(member)
            if isinstance(decision, ReadyCommit):
                if await self._is_its_own(context, decision):
                    return decision
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

    async def _decision(self, member: WaitingProposal) -> Decision | Refused:
        context = member.context
        began_s = context.monotonic_s()
        with context.telemetry.phase(Phase.DECIDE):
            try:
                if member.proposal.weight >= offload.LONG:
                    await self.section.take_time()
                location, shared = self.section.table.location, self.locked.shared
                return await misplaced(
                    context, location, member.proposal, shared=shared
                ) or await decide(
                    self.locked, member.proposal, early=member.early, faults=context.faults
                )
            except Refused as refused:
                return refused
            finally:
                member.check_s += context.monotonic_s() - began_s

    @abstractmethod
    async def _is_its_own(self, context: Context, ready: ReadyCommit) -> bool:
        """Whether the version is this commit's. False where the log has another commit as that
        version, which was then read in."""

    async def _stands(
        self, context: Context, proposal: Proposal, refusal: Refusal, *, attempt: int
    ) -> bool:
        """Whether the refusal may be told. False where the log goes on: the proposal is decided
        anew then.

        A refusal that holds at every head may be told. Any other has to hold at the log's end.
        Where it says that the id never lands, no attempt under the id may be able to land any more
        (`core.commit.refusals`)."""
        if not await offload.run(offload.weight_of(proposal), is_of_the_head, proposal, refusal):
            return True
        closes = is_final(refusal)
        fences = closes and not (proposal.has_new_id and attempt == 1)
        if not await self._is_at_end(context, proposal, fences=fences):
            return False
        if closes:
            await close(context, self.section, proposal.transaction_id)
            self.must_save = True
        return True

    @abstractmethod
    async def _is_at_end(self, context: Context, proposal: Proposal, *, fences: bool) -> bool:
        """Whether the log ends where the section does. With `fences`, the PUT of a fence finds out,
        and a version that it finds taken is read in. Raises `Behind`."""


def untaken(error: Exception, transaction_id: str) -> CommitStateUnknown:
    return CommitStateUnknown(
        f"the index did not take what may have landed: {error}", transaction_id=transaction_id
    )


def nothing(section: CommitSection, proposal: Proposal, empty: Empty) -> NothingToCommit:
    return NothingToCommit(
        table=section.table,
        transaction_id=proposal.transaction_id,
        read_version=empty.read_version,
    )
