"""Fences: empty commits that keep an aborted transaction out of a plain table's log.

An attempt that nobody heard of again may still write its version: its request is on its way to
the store, or its instance was stopped just before it and goes on. That version can only be the
one after the head, since every earlier one is taken. So an abort takes it: the attempt then
meets a version that exists, whenever it comes.

A fence names the id it stands for, so that an index made from the log knows the id as aborted.
"""

from tidegate_protocol.transaction import Proposal, ReadyCommit
from tidegate_service.core.clock import check_clock
from tidegate_service.core.context import Context
from tidegate_service.core.decide import decide
from tidegate_service.core.errors import CommitStateUnknown, ServiceError, TableQuarantined
from tidegate_service.core.hidden import reveal
from tidegate_service.core.ingest import FENCE_OPERATION, FENCED_ID, ingest
from tidegate_service.core.ports import CommitSection, PutResult
from tidegate_service.core.ratify import PUT_ATTEMPTS, occupy, ratified
from tidegate_service.core.records import Aborted, CommitRecord, TableState


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
        ready = await decide(section, _proposal(context.new_id(), transaction_id))
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
