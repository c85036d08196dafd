"""Proposing a transaction, which `core.commit.group` decides.

The decision runs in tasks of its own, so that it ends even if the caller goes away.
"""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar, assert_never

from tidegate_protocol.base.problems import Code
from tidegate_protocol.proposal.transaction import Conflict, Invalid, Proposal, ReadyCommit
from tidegate_service.core.commit.batches.kinds import batches_of
from tidegate_service.core.commit.batches.table_batch import nothing
from tidegate_service.core.commit.decide import Decision, decide
from tidegate_service.core.commit.early_check import EarlyCheck, check_early
from tidegate_service.core.commit.observed import Ended, observed
from tidegate_service.core.commit.preparation import Empty
from tidegate_service.core.commit.replays import landed_before
from tidegate_service.core.context import Context
from tidegate_service.core.errors import NotFound, Refused
from tidegate_service.core.instance.locked_table import LockedTable, ManyWinners
from tidegate_service.core.log.catching_up.catch_up import with_log_read
from tidegate_service.core.log.catching_up.foreign_commits import check_operation
from tidegate_service.core.log.catching_up.sight import SeenBefore
from tidegate_service.core.log.clock_skew import check_clock
from tidegate_service.core.log.loading.places import misplaced
from tidegate_service.core.observe.faults import Step, around
from tidegate_service.core.observe.telemetry import Outcome as Ending
from tidegate_service.core.ports.kinds import TableIdentity
from tidegate_service.core.ports.outcomes import Committed, NothingToCommit, Outcome, WouldCommit
from tidegate_service.core.ports.records import TableHead
from tidegate_service.core.tables.in_turn import in_turn
from tidegate_service.core.tables.lookup import VersionsInTurn, find_head, wide_section

T = TypeVar("T")


async def propose(context: Context, ref: str, proposal: Proposal) -> Outcome:
    """Decide the proposal and, if it wins, land it as the table's next version.

    Raises `NotFound`, `Refused` (a transaction id that was aborted or reused, a read version
    that is too old), `Unavailable` (nothing was done) and `CommitStateUnknown` (it may have
    landed; the same request finds out).
    """
    async with around(context.faults, Step.M0_FIND_TABLE):
        known = context.tables.known(ref)
        table = known or context.tables.learn(await find_head(context, ref))
    reserved = check_operation(proposal)
    if reserved is not None:
        return reserved
    try:
        outcome = await _decided(context, table, proposal)
    except NotFound as error:
        if known is None or error.code is not Code.TABLE_NOT_FOUND:
            raise
        # The table was forgotten since, and perhaps made anew under its name.
        context.tables.forget(ref)
        table = context.tables.learn(await find_head(context, ref))
        outcome = await _decided(context, table, proposal)
    async with around(context.faults, table.kind.steps.answer):
        return outcome


async def _decided(context: Context, table: TableIdentity, proposal: Proposal) -> Outcome:
    async def decide() -> Outcome:
        return await observed(
            context.telemetry,
            lambda: context.commit(context, table, proposal),
            catalog_managed=table.catalog_managed,
            ended=_ended,
        )

    turn = context.pending.begin(table.id, proposal)
    try:
        outcome = await _with_predicates_read(context, table.id, proposal, decide)
    except asyncio.CancelledError:
        context.pending.leave(table.id, turn, now_s=context.monotonic_s())
        raise
    except BaseException:
        context.pending.end(table.id, turn)
        raise
    context.pending.end(table.id, turn)
    return outcome


async def _with_predicates_read(
    context: Context,
    table_id: str,
    proposal: Proposal,
    decide: Callable[[], Coroutine[Any, Any, T]],
) -> T:
    if not proposal.reads.is_long:
        return await decide()
    return await context.long_predicates.decided(
        VersionsInTurn(context, table_id),
        table_id,
        proposal,
        decide,
        principal=context.caller.principal.name,
    )


async def conflict_check(
    context: Context, ref: str, proposal: Proposal
) -> WouldCommit | NothingToCommit | Committed | Conflict | Invalid:
    """What `propose` would answer now. Nothing of the proposal is written, but foreign commits that
    are found are read into the index. Raises as `propose` does."""
    table = await find_head(context, ref)
    reserved = check_operation(proposal)
    if reserved is not None:
        return reserved

    async def check() -> WouldCommit | NothingToCommit | Committed | Conflict | Invalid:
        early: EarlyCheck | None = None
        until = context.monotonic_s() + context.commit_deadline_s / 2
        while True:
            try:
                async with wide_section(context, table):
                    return await with_log_read(
                        context, table.id, partial(_check, context, table, proposal, early)
                    )
            except ManyWinners:
                early = await check_early(context, table.id, proposal, early, until=until)

    async def decide() -> WouldCommit | NothingToCommit | Committed | Conflict | Invalid:
        key = (table.id, proposal.transaction_id)
        return await in_turn(context, context.checking, key, check)

    return await _with_predicates_read(context, table.id, proposal, decide)


async def _check(
    context: Context,
    table: TableHead,
    proposal: Proposal,
    early: EarlyCheck | None,
    sight: SeenBefore,
) -> WouldCommit | NothingToCommit | Committed | Conflict | Invalid:
    async with context.index.commit_section(table.id, who=context.who) as section:
        must_save = await batches_of(section.table).read_in(context, section, sight)
        locked = LockedTable(section, context.windows, context.limits)
        try:
            decision = await _checked(context, locked, proposal, early, sight)
            if must_save:
                await section.save()
            locked.keep()
        finally:
            locked.end()
        if isinstance(decision, Refused):
            raise decision
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


async def _checked(
    context: Context,
    locked: LockedTable,
    proposal: Proposal,
    early: EarlyCheck | None,
    sight: SeenBefore,
) -> Committed | Decision | Refused:
    section = locked.section
    try:
        landed = await landed_before(section, proposal)
        if landed is not None:
            return landed
        check_clock(context, section)
        await batches_of(section.table).check_log(context, section, sight)
        return await misplaced(context, section.table.location, proposal) or await decide(
            locked, proposal, early=early
        )
    except Refused as refused:
        return refused


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
