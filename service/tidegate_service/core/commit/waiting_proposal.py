"""A proposal on its way to its outcome, which it shares with those that it waits with."""

import asyncio
from contextvars import Context as Variables
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidegate_protocol.transaction import Proposal
from tidegate_service.core.outcomes import Outcome
from tidegate_service.core.table_ids import TableIdentity

if TYPE_CHECKING:
    # A context owns the committer, whose members have contexts.
    from tidegate_service.core.context import Context

ATTEMPTS = 5


@dataclass(slots=True, eq=False, kw_only=True)
class Member:
    """One proposal on its way. `alone` keeps others out of its group, `overdue` says that it may
    not wait again before its first attempt. `variables` are those of the request, which logs and
    traces read."""

    context: "Context"
    table: TableIdentity
    proposal: Proposal
    started: float
    variables: Variables
    answer: asyncio.Future[Outcome]
    attempt: int = 1
    alone: bool = False
    overdue: bool = False
    told: bool = False

    def enter(self) -> None:
        """It is under way from now on, until it is told. Raises `ShuttingDown`."""
        self.context.sections.enter((self.table.id, self.proposal.transaction_id))

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
        self.context.sections.leave((self.table.id, self.proposal.transaction_id))
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
    row another transaction holds."""

    again: list[Member] = field(default_factory=list)
    busy: list[Member] = field(default_factory=list)
