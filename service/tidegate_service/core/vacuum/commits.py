"""What a vacuum says of itself: two commits without files, and a row of the audit trail."""

from tidegate_protocol.proposal.transaction import Conflict, Invalid, Proposal
from tidegate_service.core.access.audit import Change, Deed
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.context import Context
from tidegate_service.core.errors import Refused, ServiceError
from tidegate_service.core.ports.outcomes import Committed
from tidegate_service.core.ports.records import TableRecord

VACUUM = "vacuum"
"""What a table's upkeep knows it by."""


def proposal_of(
    context: Context, operation: str, parameters: dict[str, object], metrics: dict[str, str]
) -> Proposal:
    """An empty one, checked at the head."""
    return Proposal(
        transaction_id=context.new_id(),
        operation=operation,
        operation_parameters=parameters,
        operation_metrics=metrics,
        actions=(),
        has_new_id=True,
    )


async def landed(
    context: Context,
    table: TableRecord,
    operation: str,
    parameters: dict[str, object],
    metrics: dict[str, str],
) -> int:
    """Its version. Raises as `propose` does."""
    proposal = proposal_of(context, operation, parameters, metrics)
    outcome = await propose(context, table.id, proposal)
    if isinstance(outcome, Conflict | Invalid):
        raise Refused(f"{operation} was refused: {outcome.detail}", code=outcome.code)
    if not isinstance(outcome, Committed):
        raise ServiceError(f"{operation} was not committed: {outcome}")
    return outcome.record.version


async def record_vacuum(context: Context, table: TableRecord, version: int) -> None:
    """Into the audit trail, before anything is deleted."""
    async with context.index.commit_section(table.id, who=context.who) as section:
        await section.record_change(Change(deed=Deed.VACUUM, by=context.caller, version=version))
        await section.save()
