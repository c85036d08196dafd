"""Refusals: which say that an id never lands, and what has to be known before one is told.

A 409, 410 or 422 says that this id and body will never land. Each of these answers is true of
earlier attempts, too:

- A conflict is with a version of the log. An attempt for that version or an earlier one meets a
  file. An attempt for a later version had the same conflict.
- A proposal that is invalid by itself, or at its read version, is invalid at any head.
- A proposal without a read version may be invalid at this head and valid at another: the index may
  end before the log does. The id is fenced before the refusal. The fence's own PUT finds out
  whether the log ends at the head; where it does not, the proposal is decided anew. An id that was
  made for this copy has no earlier attempt and gets no fence: the log is read to its end.
- A read version is too old for what the index holds, and the index held more before it was made
  anew. The id is fenced before this refusal, too.
- An id that landed with another body is a version of the log. An attempt for a later version read
  that version in, and met its id.
- An aborted id was fenced when it was aborted.
"""

from tidegate_protocol.base.problems import PROBLEMS, Code
from tidegate_protocol.prepare.prepare import is_invalid_at_any_version
from tidegate_protocol.proposal.transaction import Conflict, Invalid, Proposal
from tidegate_service.core.access.audit import Change, Deed
from tidegate_service.core.commit.preparation import Empty
from tidegate_service.core.context import Context
from tidegate_service.core.errors import Refused
from tidegate_service.core.ports.index import CommitSection
from tidegate_service.core.ports.records import Aborted, CommitRecord

FINAL = (409, 410, 422)
"""Refusals with these statuses say that an id and body will never land."""

Refusal = Empty | Conflict | Invalid | Refused
"""Why a proposal does not land."""


def aborted(transaction_id: str) -> Refused:
    """The answer to a proposal whose id is closed."""
    return Refused(
        f"transaction {transaction_id} was aborted and will never land",
        code=Code.TRANSACTION_ABORTED,
        hint="propose the work under a new transaction id",
    )


def is_open(known: CommitRecord | Aborted | None) -> bool:
    """Whether an attempt under the id may still land: nobody closed the id, or an earlier release
    closed it without a fence."""
    return known is None or (isinstance(known, Aborted) and known.unfenced_after is not None)


def is_of_the_head(proposal: Proposal, refusal: Refusal) -> bool:
    """Whether another head might change the answer. The log has to be read to its end before such a
    refusal is given."""
    if isinstance(refusal, Refused) and refusal.code is Code.READ_VERSION_TOO_OLD:
        return True
    if isinstance(refusal, Conflict) or proposal.read_version is not None:
        return False
    return not (isinstance(refusal, Invalid) and is_invalid_at_any_version(proposal))


def is_final(refusal: Refusal) -> bool:
    """Whether the refusal says that this id and body will never land."""
    if isinstance(refusal, Refused):
        return PROBLEMS[refusal.code].status in FINAL
    return not isinstance(refusal, Empty)


async def close(context: Context, section: CommitSection, transaction_id: str) -> None:
    """Record that an id is aborted, and who closed it. No attempt under it can land any more."""
    await section.abort(transaction_id)
    closed = Change(deed=Deed.ABORT, by=context.caller, transaction_id=transaction_id)
    await section.record_change(closed)
