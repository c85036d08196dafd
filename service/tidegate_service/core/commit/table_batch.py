"""One table of a group: its proposals, one after the other, each decided behind the one before.

The decision is a function of the proposal and the log alone, so whenever the log turns out to be
longer than the index knew, the whole decision is taken again.

What a commit is depends on the kind of the table: `core.commit.plain_batch` and
`core.commit.catalog_managed_batch` fill in the steps of this one way.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from tidegate_protocol.proposal.transaction import Proposal, ReadyCommit
from tidegate_service.core.commit.abort_fence import Refusal, close, is_final, is_of_the_head
from tidegate_service.core.commit.decide import Decision, Empty, decide
from tidegate_service.core.commit.locked_table import LockedTable
from tidegate_service.core.commit.replays import landed_before
from tidegate_service.core.commit.waiting_proposal import WaitingProposal
from tidegate_service.core.context import Context
from tidegate_service.core.errors import CommitStateUnknown, Refused
from tidegate_service.core.log.clock_skew import check_clock
from tidegate_service.core.log.foreign_commits import MOST_RACES, Behind
from tidegate_service.core.log.put_version import ratified
from tidegate_service.core.observe.faults import CommitSteps, around
from tidegate_service.core.observe.telemetry import Phase
from tidegate_service.core.ports.index import CommitGroup, CommitSection, FilesFirst, TakesLong
from tidegate_service.core.ports.outcomes import Committed, NothingToCommit, Outcome
from tidegate_service.core.ports.records import Aborted, CommitRecord, RatifiedCommit
from tidegate_service.core.sharing import offload


class TableBatch(ABC):
    """Lands proposals on a locked table. `must_save` says that something was written that has to
    be saved, `is_stopped` that the store did not answer, so that nobody else should try.

    Only a plain table has files that wait to be put. What is said of them here is true of a kind
    that has none.
    """

    steps: ClassVar[CommitSteps]
    is_published: ClassVar[bool]
    """Whether what lands lies in the log by then."""

    def __init__(self, context: Context, section: CommitSection, *, shared: bool) -> None:
        self.section = section
        self.locked = LockedTable(section, context.windows, shared=shared)
        self.must_save = False
        self.is_stopped = False

    @staticmethod
    @abstractmethod
    async def record(context: Context, group: CommitGroup, batches: Sequence["TableBatch"]) -> None:
        """Write what landed on tables of this kind, and save it."""

    @staticmethod
    @abstractmethod
    async def read_in(context: Context, section: CommitSection) -> bool:
        """Have the section know what a conflict check must; whether it has to be saved before
        anything is told. Raises `Behind`, after saving what was read, and `Unavailable`."""

    @staticmethod
    @abstractmethod
    async def shut_out(
        context: Context,
        section: CommitSection,
        transaction_id: str,
        known: CommitRecord | Aborted | None,
    ) -> CommitRecord | Aborted | None:
        """See that no attempt under an open id can land any more; what is known of the id by then.
        The caller saves the section. Raises as `fence` and `look` do."""

    @property
    def holds(self) -> int:
        """How many commits were decided whose files are not there yet: their outcomes, and all
        that were decided behind them, hold only once `put_files` has put them there."""
        return 0

    @property
    def is_full(self) -> bool:
        """Whether the files that wait have to be put before anything else is decided."""
        return False

    @property
    def in_doubt(self) -> int:
        """How many of the files that `put_files` did not put may be there all the same."""
        return 0

    def together(self, others_wait: bool) -> None:
        """Whether files may wait for those of others that are decided next."""
        return

    async def put_files(self, context: Context) -> int:
        """Put the files that wait; how many of their commits have none and are forgotten."""
        return 0

    def write_ahead(self) -> None:
        """Begin to write the index while the next file is written."""
        return

    def ended(self, context: Context) -> None:
        """The group is over, and its members are told."""
        return

    async def land(self, member: WaitingProposal) -> Outcome:
        """The outcome, true once the section is saved. Raises what `propose` does, and `Behind`."""
        decisions = member.decisions
        try:
            return await self._land(member)
        except (FilesFirst, TakesLong):
            # What was decided too early counts as not decided.
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
                published=self.is_published,
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
        )

    @abstractmethod
    async def _append(self, ready: ReadyCommit, commit: RatifiedCommit) -> None:
        """Append the commit to the section. Raises `CommitStateUnknown` where it may have landed
        though the index did not take it."""

    async def _known(self, context: Context, proposal: Proposal) -> Committed | None:
        """The first answer to the proposal's id, looked for wherever it may lie."""
        async with around(context.faults, self.steps.look_up):
            landed = await self._looked_up(context, proposal)
        if landed is not None:
            return landed
        check_clock(context, self.section)
        return await self._looked_further(context, proposal)

    async def _looked_up(self, context: Context, proposal: Proposal) -> Committed | None:
        """The first answer, as far as the index knows."""
        return await landed_before(self.section, proposal)

    @abstractmethod
    async def _looked_further(self, context: Context, proposal: Proposal) -> Committed | None:
        """The first answer, where the index does not have it and the log may. Raises what keeps a
        new proposal from being decided at all."""

    async def _ready(self, member: WaitingProposal) -> ReadyCommit | Outcome:
        """The proposal as the next version, which is its own by now, or the outcome that it has
        instead."""
        context, proposal, section = member.context, member.proposal, self.section
        for _ in range(MOST_RACES):
            member.decisions += 1
            decision = await self._decision(context, proposal)
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

    async def _decision(self, context: Context, proposal: Proposal) -> Decision | Refused:
        with context.telemetry.phase(Phase.DECIDE):
            try:
                return await decide(self.locked, proposal, faults=context.faults)
            except Refused as refused:
                return refused

    @abstractmethod
    async def _is_its_own(self, context: Context, ready: ReadyCommit) -> bool:
        """Whether the version is this commit's; False where the log goes on with another one, which
        was read in."""

    async def _stands(
        self, context: Context, proposal: Proposal, refusal: Refusal, *, attempt: int
    ) -> bool:
        """Whether the refusal may be told: what the log holds to its end says the same, and where
        it says that the id never lands, nothing else can come of it any more
        (`core.commit.abort_fence`). False where the log goes on, to be decided anew. The reasons
        that no head changes cost nothing."""
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
        """Whether the log ends where the section does, which a fence finds out by itself; else it
        is read in."""


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
