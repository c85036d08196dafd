"""A proposal checked against the commits since its read version, before its table is locked.

Reading and checking hundreds of megabytes takes seconds, and no other commit to the table should
wait for that. A committed version stays the same while the table's epoch and the database stay the
same. So what was found holds under the lock, too. There, only later commits are checked.
"""

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, replace

from tidegate_protocol.base.problems import Code
from tidegate_protocol.conflict.window import CommitWindow
from tidegate_protocol.features.known import ROW_TRACKING
from tidegate_protocol.features.row_tracking import first_with_mark, mark_before
from tidegate_protocol.features.table_features import supports
from tidegate_protocol.prepare.live_files import FileAssumptions
from tidegate_protocol.proposal.transaction import (
    Conflict,
    Invalid,
    PreparedTransaction,
    Proposal,
    ReadState,
)
from tidegate_service.core.commit.preparation import Empty, assumptions_in, own_weight, prepared
from tidegate_service.core.context import Context
from tidegate_service.core.errors import IndexUnavailable, Refused
from tidegate_service.core.instance.window_cache import ACTIONS_A_TABLE
from tidegate_service.core.ports.index import CommitSection, TakesLong
from tidegate_service.core.ports.records import Glance, TableHead
from tidegate_service.core.sharing import offload
from tidegate_service.core.tables.lookup import state_at

Outcome = PreparedTransaction | Empty | Conflict | Invalid | Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyCheck:
    """A proposal checked against commits of one epoch of the table, in one run of a database. The
    outcome is a transaction that is checked through some version, or why it does not commit.
    `assumptions` are looked up under the lock."""

    database: str
    epoch: int
    outcome: Outcome
    assumptions: FileAssumptions

    def is_of(self, at: CommitSection | Glance) -> bool:
        """Whether the table still has the versions that the proposal was checked against."""
        return (self.database, self.epoch) == (at.database, at.table.epoch)


async def check_early(
    context: Context,
    table_id: str,
    proposal: Proposal,
    before: EarlyCheck | None,
    *,
    until: float,
) -> EarlyCheck | None:
    """The proposal checked against all that is committed now, from where `before` ended. None where
    the table is gone, or its index was made anew meanwhile: the lock's holder finds that out.

    Raises `Unavailable` (`backpressure`) where as many are checked as may be, and
    `IndexUnavailable` at `until`, a time of `monotonic_s`.
    """
    memory, most = context.windows.memory, context.limits.winner_bytes
    memory.take(context.who, most)
    try:
        async with asyncio.timeout(max(0.0, until - context.monotonic_s())):
            return await _checked(context, table_id, proposal, before)
    except TimeoutError:
        raise IndexUnavailable(
            f"so much was committed since version {proposal.read_version} that checking it takes "
            "longer than a request may; read the table again and propose anew"
        ) from None
    finally:
        memory.give_back(context.who, most)


async def _checked(
    context: Context, table_id: str, proposal: Proposal, before: EarlyCheck | None
) -> EarlyCheck | None:
    first = await context.index.glance(table_id)
    if first is None:
        return None
    if before is not None and before.is_of(first):
        outcome, assumptions, now = before.outcome, before.assumptions, first
    else:
        version = proposal.read_version
        assert version is not None, "what is checked at the head has no winners"
        state = await _state_at(context, table_id, version)
        # Before the head that it is taken for: no commit between the two may move it.
        mark = await context.index.row_id_high_water_mark(table_id)
        glance = await context.index.glance(table_id)
        if glance is None or not _is_same(glance, first):
            return None
        now = glance
        outcome = await _begun(context, now.table, proposal, state, mark)
        assumptions = await assumptions_in(outcome)
    if isinstance(outcome, PreparedTransaction):
        outcome = await _past_winners(context, now, outcome)
    return EarlyCheck(
        database=now.database, epoch=now.table.epoch, outcome=outcome, assumptions=assumptions
    )


async def _state_at(context: Context, table_id: str, version: int) -> ReadState | None:
    try:
        return await state_at(context, table_id, version)
    except TakesLong:
        return await state_at(context, table_id, version, most_bytes=None)


def _is_same(glance: Glance, other: Glance) -> bool:
    return (glance.database, glance.table.epoch) == (other.database, other.table.epoch)


async def _begun(
    context: Context, table: TableHead, proposal: Proposal, state: ReadState | None, mark: int
) -> Outcome:
    version = proposal.read_version
    assert version is not None
    if state is None:
        return lacks_history(table, version)
    if table.latest_version - version > context.limits.winner_commits:
        return too_many(context, table, version)
    try:
        if state.protocol is not None and supports(state.protocol, ROW_TRACKING):
            found = await _mark_at(context, table, version, mark)
            state = replace(state, row_id_high_water_mark=found)
        return await prepared(proposal, state, context.limits)
    except TakesLong:
        return too_many(context, table, version)
    except Refused as refused:
        return refused


async def _mark_at(context: Context, table: TableHead, version: int, latest: int) -> int:
    """The high water mark of row ids at a version; `latest` is the mark at the head."""
    most = context.limits.winner_bytes
    async with aclosing(
        context.index.winner_pages(table.id, version, table.latest_version, most_bytes=most)
    ) as pages:
        async for page in pages:
            first = first_with_mark(page)
            if first is not None:
                return await offload.run(first.weight, mark_before, (first,), latest)
    return latest


async def _past_winners(context: Context, at: Glance, txn: PreparedTransaction) -> Outcome:
    """The transaction past every commit up to the head, read page by page. Where the commits are no
    more than are kept of a table, they stay in memory for the next proposal."""
    table = at.table
    own, version = own_weight(txn.proposal, txn.read), txn.read.version
    kept: CommitWindow | None = CommitWindow(after=txn.checked_through)
    most = context.limits.winner_bytes
    try:
        async with aclosing(
            context.index.winner_pages(
                table.id, txn.checked_through, table.latest_version, most_bytes=most
            )
        ) as pages:
            async for page in pages:
                window = CommitWindow(after=txn.checked_through)
                for winner in page:
                    window.append(winner)
                    if kept is not None:
                        kept.append(winner)
                if kept is not None and kept.weight > ACTIONS_A_TABLE:
                    kept = None
                weight = max(window.weight_of(txn) + len(txn.actions), own)
                outcome = await offload.run(weight, window.check_conflicts, txn)
                if isinstance(outcome, Conflict):
                    return outcome
                txn = outcome
    except TakesLong:
        return too_many(context, table, version)
    if txn.checked_through < table.latest_version:
        return lacks_history(table, version)
    if kept is not None:
        context.windows.offer(table, kept, at.database)
    return txn


def lacks_history(table: TableHead, read_version: int) -> Refused:
    """The refusal of a proposal whose winners the index does not have any more."""
    return _too_old(
        f"the index no longer holds the history of {table.name} since version {read_version}, so "
        "conflicts cannot be ruled out",
        table,
    )


def too_many(context: Context, table: TableHead, read_version: int) -> Refused:
    """The refusal of a proposal that has more winners than are looked through."""
    limits = context.limits
    return _too_old(
        f"the commits to {table.name} since version {read_version} are more than "
        f"{limits.winner_bytes} bytes, or {limits.winner_commits}, which are as many as are looked "
        "through for a proposal",
        table,
    )


def _too_old(detail: str, table: TableHead) -> Refused:
    return Refused(
        detail,
        code=Code.READ_VERSION_TOO_OLD,
        hint=f"read the table again at version {table.latest_version} and propose anew",
    )
