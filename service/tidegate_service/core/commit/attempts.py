"""What the outcome of one attempt of a proposal says of the attempts before it."""

from tidegate_protocol.base.problems import Code
from tidegate_service.core.commit.queue.waiting_proposal import WaitingProposal
from tidegate_service.core.commit.refusals import is_final
from tidegate_service.core.errors import CommitStateUnknown, NotFound, Refused, Unavailable
from tidegate_service.core.ports.outcomes import Outcome


def true_of_all(member: WaitingProposal, outcome: Outcome | Exception) -> Outcome | Exception:
    """The outcome of an attempt, if it is true of earlier attempts, too; otherwise that the outcome
    is unknown. An attempt that did nothing says nothing of earlier ones."""
    if member.attempt == 1 or not isinstance(outcome, NotFound | Refused | Unavailable):
        return outcome
    if isinstance(outcome, Refused) and is_final(outcome):
        return outcome
    if outcome.code is Code.BACKPRESSURE and member.table.catalog_managed:
        # It is raised after the id was looked up under the table's lock, so no attempt has landed.
        return outcome
    return unknown(member, outcome)


def unknown(member: WaitingProposal, cause: Exception) -> CommitStateUnknown:
    return CommitStateUnknown(
        f"an earlier attempt may have landed, and looking it up failed: {cause}",
        transaction_id=member.proposal.transaction_id,
    )
