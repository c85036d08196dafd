"""A proposal on its way to its outcome, which it shares with those that it waits with."""

import asyncio
from contextvars import Context as Variables
from dataclasses import dataclass, field

from tidegate_protocol.proposal.transaction import Proposal
from tidegate_service.core.context import Context
from tidegate_service.core.instance.table_cache import TableIdentity
from tidegate_service.core.ports.outcomes import Outcome

ATTEMPTS = 5


@dataclass(slots=True, eq=False, kw_only=True)
class WaitingProposal:
    """One proposal on its way. `attempt` counts the groups that may have landed it, `decisions`
    how often it was decided, once more behind each foreign version. `alone` keeps others out of
    its group, `takes_long` says that they should not wait for it, and `overdue` that it may not
    wait again before its first attempt. `variables` are those of the request, which logs and traces
    read."""

    context: Context
    table: TableIdentity
    proposal: Proposal
    started: float
    variables: Variables
    answer: asyncio.Future[Outcome]
    attempt: int = 1
    decisions: int = 0
    alone: bool = False
    overdue: bool = False
    takes_long: bool = False
    told: bool = False

    def enter(self) -> None:
        """It is under way from now on, until it is told. Raises `ShuttingDown`."""
        self.context.running.enter((self.table.id, self.proposal.transaction_id))

    def begun(self) -> None:
        """Its wait for a group has ended; one that is tried again has waited before."""
        if self.attempt == 1:
            waited = self.context.monotonic_s() - self.started
            self.variables.run(self.context.telemetry.waited, waited)

    def tell(self, result: Outcome | BaseException) -> None:
        """Answer, if whoever asked still waits. The first answer counts."""
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
    """Who has no answer yet: `again` were not decided or not told, `busy` belong to tables whose
    row another transaction holds, `unsure` to catalog-managed ones that have to be looked at."""

    again: list[WaitingProposal] = field(default_factory=list)
    busy: list[WaitingProposal] = field(default_factory=list)
    unsure: list[WaitingProposal] = field(default_factory=list)
