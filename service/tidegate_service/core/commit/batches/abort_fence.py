"""Fences: empty commits that keep a transaction out of a plain table's log for good.

An attempt without an answer may still write its version: its PUT is on its way to the store, or
its instance was stopped just before the PUT and goes on. A file is sent only when all files before
it are in the log, also within a group. So a late PUT is for a version that exists, or for the
version after the log's end. A fence takes the version after the log's end. The late PUT then meets
a version that exists, and its instance reads on. The fence has a transaction id of its own, which
that instance has to ask the index for. If its lock has ended, the index says so, and the instance
decides nothing more.

A fence names the id that it keeps out, so that an index made from the log knows the id as aborted.

A catalog-managed table needs no fence. An attempt lands by the COMMIT of a session that holds the
table's row. Whoever holds the row now knows that the sessions of all earlier attempts have ended.
"""

from tidegate_protocol.proposal.transaction import Proposal, ReadyCommit
from tidegate_service.core.commit.decide import decide
from tidegate_service.core.commit.refusals import is_open
from tidegate_service.core.context import Context
from tidegate_service.core.errors import CommitStateUnknown, ServiceError, TableQuarantined
from tidegate_service.core.instance.locked_table import LockedTable
from tidegate_service.core.instance.window_cache import WindowCache
from tidegate_service.core.log.catching_up.foreign_commits import (
    FENCE_OPERATION,
    FENCED_ID,
    MOST_RACES,
    see_end,
    take_found,
)
from tidegate_service.core.log.catching_up.sight import Behind, SeenBefore
from tidegate_service.core.log.clock_skew import check_clock
from tidegate_service.core.log.put_version import occupy, ratified
from tidegate_service.core.maintenance.truncation import reload_if_truncated
from tidegate_service.core.ports.index import CommitSection
from tidegate_service.core.ports.records import Aborted, CommitRecord, TableState
from tidegate_service.core.ports.store.storage import DatedFile, Log


async def recheck_aborted(
    context: Context, section: CommitSection, sight: SeenBefore, proposal: Proposal
) -> int:
    """Check an aborted id against a plain table's log, which may have a commit under it that the
    index does not know: then the log is right. An id that was closed without a fence is fenced.

    Returns how many versions this adds to the index. The caller saves the section. Raises `Behind`
    where the log has to be read in first.
    """
    known = await section.transaction(proposal.transaction_id)
    if not isinstance(known, Aborted):
        return 0
    head = section.table.latest_version
    see_end(section, sight)
    if is_open(known):
        known = await fence(context, section, sight, proposal.transaction_id)
        if known is None:
            await section.abort(proposal.transaction_id)
    return section.table.latest_version - head


async def fence(
    context: Context, section: CommitSection, sight: SeenBefore, transaction_id: str
) -> CommitRecord | Aborted | None:
    """Fence the id at the log's end. Where the id is known by then, return what is known instead.

    The caller saves the section. Raises `CommitStateUnknown` where the store does not say whether
    the version is taken, `Behind` where the log has to be read in first, and otherwise as `propose`
    does.
    """
    table = section.table
    if table.state is TableState.QUARANTINED:
        raise TableQuarantined(f"table {table.name} takes no commits: {table.state_reason}")
    check_clock(context, section)
    log = context.storage.log(table.location, who=context.who)
    await reload_if_truncated(context, section, sight)
    locked = LockedTable(section, WindowCache(), context.limits)
    for _ in range(MOST_RACES):
        began_s = context.monotonic_s()
        found = await take_next(context, locked, log, transaction_id)
        if found is None:
            return None
        now_s, race_s = context.monotonic_s(), context.limits.race_s
        await take_found(section, found, began_s=began_s, now_s=now_s, race_s=race_s)
        known = await section.transaction(transaction_id)
        if not is_open(known):
            return known
    raise Behind


async def take_next(
    context: Context, locked: LockedTable, log: Log, transaction_id: str
) -> DatedFile | None:
    """Fence the id by the version after the head, and return None, or what the log has as that
    version already. The caller saves the section. Raises as `fence` does."""
    started = context.monotonic_s()
    ready = await decide(locked, _proposal(context.new_id(), transaction_id))
    if not isinstance(ready, ReadyCommit):
        raise ServiceError(f"an empty commit was refused: {ready}")
    try:
        found = await occupy(log, ready, context.limits)
    except CommitStateUnknown as error:
        raise CommitStateUnknown(error.detail, transaction_id=transaction_id) from error
    if found is not None:
        return found
    duration_ms = round((context.monotonic_s() - started) * 1000)
    await locked.append(
        ratified(ready, published=True, attempts=1, duration_ms=duration_ms, by=context.caller)
    )
    return None


def _proposal(fence_id: str, transaction_id: str) -> Proposal:
    # Each fence has an id of its own: an earlier fence for the same transaction lies before the
    # head by now, and keeps nothing out.
    return Proposal(
        transaction_id=fence_id,
        operation=FENCE_OPERATION,
        operation_parameters={FENCED_ID: transaction_id},
        actions=(),
    )
