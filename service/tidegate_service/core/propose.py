"""Proposing a transaction (design section 4); `core.group` is where it is decided.

The decision runs in tasks of its own, which end whatever happens to the caller.
"""

import asyncio
import contextvars
from typing import assert_never

from tidegate_protocol.problems import Code
from tidegate_protocol.transaction import Conflict, Invalid, Proposal, ReadyCommit
from tidegate_service.core.clock import check_clock
from tidegate_service.core.context import Context
from tidegate_service.core.decide import Empty, decide
from tidegate_service.core.errors import NotFound
from tidegate_service.core.faults import Step, around, steps_of
from tidegate_service.core.fence import check_operation
from tidegate_service.core.hidden import reveal
from tidegate_service.core.ingest import ingest
from tidegate_service.core.land import landed_before, nothing
from tidegate_service.core.locked import LockedTable
from tidegate_service.core.member import Member
from tidegate_service.core.observed import Ended, observed
from tidegate_service.core.outcomes import Committed, NothingToCommit, Outcome, WouldCommit
from tidegate_service.core.records import TableRecord
from tidegate_service.core.table_ids import TableIdentity
from tidegate_service.core.tables import get_table
from tidegate_service.core.telemetry import Outcome as Ending


async def propose(context: Context, ref: str, proposal: Proposal) -> Outcome:
    """Decide the proposal and, if it wins, land it as the table's next version.

    Raises `NotFound`, `Refused` (a transaction id that was aborted or reused, a read version
    that is too old), `Unavailable` (nothing is known to have happened) and
    `CommitStateUnknown` (it may have landed; the same request finds out).
    """
    async with around(context.faults, Step.M0_FIND_TABLE):
        known = context.table_ids.known(ref)
        table = known or context.table_ids.learn(await get_table(context, ref))
    reserved = check_operation(proposal)
    if reserved is not None:
        return reserved
    try:
        outcome = await _decided(context, table, proposal)
    except NotFound as error:
        if known is None or error.code is not Code.TABLE_NOT_FOUND:
            raise
        # Forgotten since, and perhaps made anew under its name.
        context.table_ids.forget(ref)
        table = context.table_ids.learn(await get_table(context, ref))
        outcome = await _decided(context, table, proposal)
    async with around(context.faults, steps_of(table.catalog_managed).answer):
        return outcome


async def _decided(context: Context, table: TableIdentity, proposal: Proposal) -> Outcome:
    return await observed(
        context.telemetry,
        lambda: context.committer.commit(_member(context, table, proposal)),
        catalog_managed=table.catalog_managed,
        ended=_ended,
    )


def _member(context: Context, table: TableIdentity, proposal: Proposal) -> Member:
    return Member(
        context=context,
        table=table,
        proposal=proposal,
        started=context.monotonic_s(),
        variables=contextvars.copy_context(),
        answer=asyncio.get_running_loop().create_future(),
    )


async def conflict_check(
    context: Context, ref: str, proposal: Proposal
) -> WouldCommit | NothingToCommit | Committed | Conflict | Invalid:
    """What `propose` would answer now. Nothing of the proposal is written; foreign commits
    that are found on the way are read into the index as ever. Raises as `propose` does."""
    table = await get_table(context, ref)
    reserved = check_operation(proposal)
    if reserved is not None:
        return reserved
    return await context.sections.run(
        (table.id, proposal.transaction_id), _check(context, table, proposal)
    )


async def _check(
    context: Context, table: TableRecord, proposal: Proposal
) -> WouldCommit | NothingToCommit | Committed | Conflict | Invalid:
    async with context.index.commit_section(table.id) as section:
        ingested = 0
        if not section.table.catalog_managed:
            log = context.storage.log(section.table.location)
            ingested += await reveal(context, section, log)
            ingested += await ingest(section, log)
        landed = await landed_before(section, proposal)
        if landed is None:
            check_clock(context, section)
        locked = LockedTable(section, context.windows)
        decision = landed or await decide(locked, proposal)
        if ingested:
            await section.save()
        locked.keep()
        if isinstance(decision, Empty):
            return nothing(section, proposal, decision)
        if not isinstance(decision, ReadyCommit):
            return decision
        read_version = decision.transaction.read.version
        return WouldCommit(
            table=section.table,
            transaction_id=proposal.transaction_id,
            version=decision.version,
            read_version=read_version,
            isolation_level=decision.transaction.isolation_level,
            is_blind_append=decision.transaction.is_blind_append,
            rebased_over=decision.version - read_version - 1,
        )


def _ended(result: Outcome) -> Ended:
    match result:
        case Committed():
            return (Ending.REPLAYED if result.replayed else Ending.LANDED), None
        case NothingToCommit():
            return Ending.EMPTY, None
        case Conflict():
            return Ending.CONFLICT, result.code
        case Invalid():
            return Ending.INVALID, result.code
        case _:
            assert_never(result)
