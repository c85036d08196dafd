"""Fences: empty commits that keep an aborted transaction out of a plain table's log.

An attempt that nobody heard of again may still write its version: its request is on its way to
the store, or its instance was stopped just before it and goes on. That version can only be the
one after the head, since every earlier one is taken. So an abort takes it: the attempt then
meets a version that exists, whenever it comes.

A fence names the id it stands for, so that an index made from the log knows the id as aborted.
"""

from tidegate_protocol.problems import Code
from tidegate_protocol.transaction import Invalid, Proposal, ReadyCommit
from tidegate_service.core.audit import Change, Deed
from tidegate_service.core.clock import check_clock
from tidegate_service.core.context import Context
from tidegate_service.core.decide import Decision, decide
from tidegate_service.core.errors import (
    CommitStateUnknown,
    Refused,
    ServiceError,
    TableQuarantined,
)
from tidegate_service.core.hidden import reveal
from tidegate_service.core.ingest import FENCE_OPERATION, FENCED_ID, ingest
from tidegate_service.core.locked import LockedTable
from tidegate_service.core.ports import CommitSection, PutResult
from tidegate_service.core.ratify import PUT_ATTEMPTS, occupy, ratified
from tidegate_service.core.records import Aborted, CommitRecord, TableState
from tidegate_service.core.windows import Windows


def aborted(transaction_id: str) -> Refused:
    """The answer to a proposal under an id that is closed."""
    return Refused(
        f"transaction {transaction_id} was aborted and will never land",
        code=Code.TRANSACTION_ABORTED,
        hint="propose the work under a new transaction id",
    )


def check_operation(proposal: Proposal) -> Invalid | None:
    """Why a writer cannot name an operation so: a fence by its name alone would close the id of
    another's transaction wherever an index is made from the log."""
    if proposal.operation != FENCE_OPERATION:
        return None
    return Invalid(
        code=Code.INVALID_ACTION,
        detail=f"the operation {FENCE_OPERATION} is what aborts are written as; expected another",
    )


async def doubt_tombstone(context: Context, section: CommitSection, proposal: Proposal) -> int:
    """An id that was aborted may lie in a plain table's log all the same, beyond what the index
    knows, and the log wins; or it may yet get there. Returns the number of versions read in.

    Raises `Refused`, after saving the section, where the id had to be fenced first.
    """
    if section.table.catalog_managed:
        return 0
    known = await section.transaction(proposal.transaction_id)
    if not isinstance(known, Aborted):
        return 0
    count = await ingest(section, context.storage.log(section.table.location))
    if not is_open(section, known):
        return count
    known = await fence(context, section, proposal.transaction_id)
    if isinstance(known, CommitRecord):
        return count + 1
    await section.save()
    raise aborted(proposal.transaction_id)


def is_open(section: CommitSection, known: CommitRecord | Aborted | None) -> bool:
    """Whether an attempt of an aborted id may still take the version after the head."""
    head = section.table.latest_version
    return isinstance(known, Aborted) and known.unfenced_after == head


async def close_invalid(
    context: Context, section: CommitSection, proposal: Proposal, decision: Decision
) -> bool:
    """Judged at the head, a body that is invalid now might pass at a later one. The answer says
    that it never will, so the id is closed; True where that was needed.

    An earlier attempt of the same body is no danger: it was valid at another head, and the
    version after that is taken. One of another body under this id is, to that one's proposer:
    whoever asks after it brings about the fence.
    """
    if not isinstance(decision, Invalid) or proposal.read_version is not None:
        return False
    await section.abort(proposal.transaction_id, fenced=section.table.catalog_managed)
    closed = proposal.transaction_id
    await section.note(Change(deed=Deed.ABORT, by=context.caller, transaction_id=closed))
    return True


async def fence(
    context: Context, section: CommitSection, transaction_id: str
) -> CommitRecord | Aborted | None:
    """Take the version after the head, unless the log knows the transaction, which is returned.

    The caller saves the section. Raises `CommitStateUnknown` where the store does not say
    whether the version is taken, and what else `propose` does.
    """
    table = section.table
    if table.state is TableState.QUARANTINED:
        raise TableQuarantined(f"table {table.name} takes no commits: {table.state_reason}")
    check_clock(context, section)
    log = context.storage.log(table.location)
    started = context.monotonic_s()
    if await reveal(context, section, log):
        known = await section.transaction(transaction_id)
        if known is not None:
            return known
    while True:
        locked = LockedTable(section, Windows())
        ready = await decide(locked, _proposal(context.new_id(), transaction_id))
        if not isinstance(ready, ReadyCommit):
            raise ServiceError(f"an empty commit was refused: {ready}")
        try:
            taken = await occupy(log, ready, attempts=PUT_ATTEMPTS)
        except CommitStateUnknown as error:
            raise CommitStateUnknown(error.detail, transaction_id=transaction_id) from error
        if taken is PutResult.CREATED:
            break
        await ingest(section, log)
        known = await section.transaction(transaction_id)
        if known is not None:
            return known
    duration_ms = round((context.monotonic_s() - started) * 1000)
    await section.append(
        ratified(ready, published=True, attempts=1, duration_ms=duration_ms, by=context.caller)
    )
    return None


def _proposal(fence_id: str, transaction_id: str) -> Proposal:
    # With an id of its own each time: an earlier fence for the same transaction stands behind
    # the head by now and keeps nothing out.
    return Proposal(
        transaction_id=fence_id,
        operation=FENCE_OPERATION,
        operation_parameters={FENCED_ID: transaction_id},
        actions=(),
    )
