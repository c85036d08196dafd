"""A proposal on its way through the queue and a group to its outcome."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextvars import Context as Variables
from dataclasses import dataclass, field

from tidegate_protocol.proposal.transaction import Proposal
from tidegate_service.core.commit.early_check import EarlyCheck
from tidegate_service.core.context import Context
from tidegate_service.core.log.catching_up.sight import SeenBefore
from tidegate_service.core.ports.kinds import TableIdentity
from tidegate_service.core.ports.outcomes import Committed, Outcome
from tidegate_service.core.ports.records import TableHead

ATTEMPTS = 5

Work = Callable[[], Awaitable[None]]
InCompany = Callable[[], bool]
"""Whether others than the callers of a group commit to its table by now."""


@dataclass(slots=True, eq=False, kw_only=True)
class WaitingProposal:
    """One proposal on its way.

    `attempt` counts the groups that may have landed it. `decisions` counts how often it was
    decided; each foreign version adds one. `check_s` is how long that took. `alone` keeps other
    proposals out of its group. `takes_long` says that others should not wait for it. `overdue` says
    that it may not wait again before its first attempt has ended. `sight` is what was seen of its
    table's log since it came, `early` what it was checked against without the table's lock.
    `variables` are the request's, which logs and traces read.
    """

    context: Context
    table: TableIdentity
    proposal: Proposal
    started: float
    variables: Variables
    answer: asyncio.Future[Outcome]
    attempt: int = 1
    decisions: int = 0
    check_s: float = 0.0
    alone: bool = False
    overdue: bool = False
    takes_long: bool = False
    told: bool = False
    sight: SeenBefore = field(default_factory=SeenBefore)
    early: EarlyCheck | None = None

    def enter(self) -> None:
        """Register the proposal as under way, until it is told. Raises `ShuttingDown`."""
        self.context.running.enter((self.table.id, self.proposal.transaction_id))

    def begun(self) -> None:
        """Measure the wait for a group, which has ended. A later attempt's wait does not count."""
        if self.attempt == 1:
            waited = self.context.monotonic_s() - self.started
            self.variables.run(self.context.telemetry.waited, waited)

    def tell(self, result: Outcome | BaseException) -> None:
        """Answer the caller, if it still waits. The first answer counts."""
        if self.told:
            return
        self.told = True
        self.context.running.leave((self.table.id, self.proposal.transaction_id))
        if self.answer.done():
            return
        if isinstance(result, BaseException):
            self.answer.set_exception(result)
        else:
            self.answer.set_result(result)

    def may_try_again(self) -> bool:
        waited = self.context.monotonic_s() - self.started
        return self.attempt < ATTEMPTS and waited <= self.context.commit_deadline_s


@dataclass(slots=True)
class GroupResult:
    """The members without an answer. Those of `again` were not decided, or not told. Another
    transaction has locked the rows of the tables in `busy`. The logs of the catalog-managed tables
    in `unsure` have to be checked first. The members in `own_work` cannot be decided before work of
    their own is done; where the work fails, it tells its member."""

    again: list[WaitingProposal] = field(default_factory=list)
    busy: list[WaitingProposal] = field(default_factory=list)
    unsure: list[WaitingProposal] = field(default_factory=list)
    own_work: list[tuple[WaitingProposal, Work]] = field(default_factory=list)


def heads_left_by(members: Iterable[WaitingProposal]) -> dict[str, TableHead]:
    """The heads of the tables after those of the members that have landed."""
    heads: dict[str, TableHead] = {}
    for member in members:
        answer = member.answer
        if answer.done() and not answer.cancelled() and answer.exception() is None:
            outcome = answer.result()
            if isinstance(outcome, Committed):
                heads[member.table.id] = outcome.table
    return heads
