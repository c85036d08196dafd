"""What the outcome of one attempt of a proposal says of the attempts before it."""

from tidegate_service.core.commit.queue.waiting_proposal import WaitingProposal
from tidegate_service.core.commit.refusals import is_final
from tidegate_service.core.errors import Backlog, CommitStateUnknown, NotFound, Refused, Unavailable
from tidegate_service.core.ports.outcomes import Outcome


def true_of_all(member: WaitingProposal, outcome: Outcome | Exception) -> Outcome | Exception:
    """The outcome of an attempt where it is true of earlier attempts, too. Otherwise
    `CommitStateUnknown`: that this attempt did nothing says nothing of the earlier ones."""
    if member.attempt == 1 or not isinstance(outcome, NotFound | Refused | Unavailable):
        return outcome
    if isinstance(outcome, Backlog) or (isinstance(outcome, Refused) and is_final(outcome)):
        return outcome
    return unknown(member, outcome)


def unknown(member: WaitingProposal, cause: Exception) -> CommitStateUnknown:
    return CommitStateUnknown(
        f"an earlier attempt may have landed, and looking it up failed: {cause}",
        transaction_id=member.proposal.transaction_id,
    )
