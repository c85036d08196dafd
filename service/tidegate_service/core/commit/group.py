"""Proposals that are decided and ratified together: one Postgres transaction for all of them.

Each member has its own outcome, and is told it only once the transaction has ended: a conflict with
another member is a conflict only if the other member landed. A member that could not be told is
tried again, and alone if something went wrong.
"""

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from tidegate_protocol.base.problems import Code
from tidegate_service.core.commit.assumptions import look_up_assumptions
from tidegate_service.core.commit.attempts import true_of_all, unknown
from tidegate_service.core.commit.batches.kinds import batch_of, batches_of
from tidegate_service.core.commit.batches.table_batch import TableBatch
from tidegate_service.core.commit.early_check import check_early
from tidegate_service.core.commit.queue.table_queue import MEMBERS_IN_COMPANY, who_of
from tidegate_service.core.commit.queue.waiting_proposal import (
    GroupResult,
    InCompany,
    WaitingProposal,
)
from tidegate_service.core.errors import (
    CommitStateUnknown,
    IndexUnavailable,
    NotFound,
    Unavailable,
)
from tidegate_service.core.instance.locked_table import ManyWinners
from tidegate_service.core.log.catching_up.catch_up import read_on
from tidegate_service.core.log.catching_up.sight import Behind, SeenBefore
from tidegate_service.core.observe import correlation
from tidegate_service.core.observe.ports_with_faults import with_faults
from tidegate_service.core.observe.telemetry import Phase
from tidegate_service.core.ports.index import CommitGroup, FilesFirst, Index, TakesLong
from tidegate_service.core.ports.outcomes import Committed, Outcome, TableTotals

LONGEST_S = 2.0
"""A group decides no further member after so long on a slow store, since others wait for the
lock."""
LONGEST_SHARED_S = 0.2
"""The same of a group with tables of others."""
LONGEST_IN_COMPANY_S = 0.2
"""The same of a group of one table that several callers commit to: all of them wait for its end."""
FILES_IN_COMPANY = 8
"""So many small files of such a group are put together. That cannot be ended, and takes an object
store a quarter of a second; four times as many take it a second."""
YIELDS_S = 0.005
"""For so long members are decided before others of the event loop have their turn."""


async def run_group(
    members: Sequence[WaitingProposal], wait: bool, in_company: InCompany
) -> GroupResult:
    """Decide and ratify, in their order, all the proposals that can be in one transaction. Each is
    told its outcome.

    `wait` is for members of a single table. Without it, members come back as `busy` where another
    transaction has locked their table's row, and as `unsure` where their table's log has to be
    checked. No two members have the same transaction id. Where several callers commit to a single
    table (`in_company`), the members beyond `MEMBERS_IN_COMPANY`, or behind
    `LONGEST_IN_COMPANY_S`, are left for another group.
    """
    run = _Run(members, in_company)
    if not wait:
        # A shared group works for many callers, so it waits for the turn of none of them.
        correlation.leave_share()
    try:
        await run.run(wait=wait)
    except Exception as error:
        run.failed(error)
    finally:
        run.end()
    return run.result


class _Run:
    def __init__(self, members: Sequence[WaitingProposal], in_company: InCompany) -> None:
        self.result = GroupResult()
        self._in_company = in_company
        self._has_several = len(set(map(who_of, members))) > 1
        self._context = members[0].context
        self._waiting: dict[str, list[WaitingProposal]] = {}
        for member in members:
            self._waiting.setdefault(member.table.id, []).append(member)
        self._decided: list[tuple[WaitingProposal, Outcome | Exception]] = []
        self._deciding: WaitingProposal | None = None
        # Tables of whose logs more has to be seen before their members are decided.
        self._behind: dict[str, SeenBefore] = {}
        self._batches: list[TableBatch] = []
        self._until = self._until_in_company = self._yields_at = math.inf

    def end(self) -> None:
        """The transaction is over, however it ended."""
        for batch in self._batches:
            batch.locked.end()

    async def run(self, *, wait: bool) -> None:
        asked = {
            table_id: [member.proposal.transaction_id for member in members]
            for table_id, members in self._waiting.items()
        }
        first = next(iter(self._waiting.values()))[0]
        check_ahead = batches_of(first.table).check_ahead
        if wait and await check_ahead(self._context, first.table, first.sight):
            # The members may share a group now.
            self._leave_waiting()
            return
        faults = self._context.faults
        steps = first.table.kind.steps
        index = with_faults(self._context.index, faults, {Index.commit_group: steps.lock})
        async with index.commit_group(asked, wait=wait) as locked:
            now = self._context.monotonic_s()
            self._until = now + (LONGEST_S if wait else LONGEST_SHARED_S)
            self._until_in_company = now + LONGEST_IN_COMPANY_S
            self._yields_at = now + YIELDS_S
            group = with_faults(locked, faults, {CommitGroup.save: steps.save})
            await look_up_assumptions(group, self._waiting)
            batches = [
                batch
                for table_id in list(self._waiting)
                if (batch := await self._table(group, table_id, wait=wait)) is not None
            ]
            if group.is_over and not group.is_saved:
                # A write that went on beside the decisions has failed, and nobody met its error.
                raise IndexUnavailable("the database did not take what was decided")
            if not group.is_over and any(batch.must_save for batch in batches):
                with self._context.telemetry.phase(Phase.SAVE):
                    # All are of one kind: a plain table has a group of its own.
                    await batches[0].record(self._context, group, batches)
            if group.is_saved or not group.is_over:
                heads, now_s = self._context.heads, self._context.monotonic_s()
                remember = heads.saved if group.is_saved else heads.seen
                for batch in batches:
                    batch.locked.keep()
                    if batch.section.table.id not in self._behind:
                        remember(batch.section.table, now_s, database=batch.section.database)
        self._tell({batch.section.table.id: batch.totals for batch in batches})
        for table_id, sight in self._behind.items():
            await self._read_on(table_id, sight)
        self._leave_waiting()
        for batch in batches:
            batch.ended(self._context)

    async def _table(self, group: CommitGroup, table_id: str, *, wait: bool) -> TableBatch | None:
        members = self._waiting[table_id]
        section = group.sections.get(table_id)
        if section is None:
            del self._waiting[table_id]
            self._missing(members, wait=wait)
            return None
        if not wait and batches_of(section.table).needs_check(self._context, section):
            # No other table's members should wait for its store.
            del self._waiting[table_id]
            self.result.unsure.extend(members)
            return None
        batch = batch_of(self._context, section, shared=not wait)
        self._batches.append(batch)
        # Outcomes from this place on are valid only once the buffered files are put.
        certain = len(self._decided)
        buffers = True
        while not group.is_over and not batch.is_stopped:
            in_company = wait and (self._has_several or self._in_company())
            is_late = await self._is_late(in_company) and (bool(self._decided) or not buffers)
            if is_late and not buffers and members:
                # A PUT of its own, under a new lock, finds out why the file could not be put.
                members[0].alone = True
            is_full = batch.is_full or (in_company and batch.buffered >= FILES_IN_COMPANY)
            if is_full or not members or is_late:
                if not batch.buffered:
                    break
                buffers = await self._put_buffered(batch, members, since=certain) and buffers
                certain = len(self._decided)
                continue
            batch.expect_more(buffers and len(members) > 1)
            self._deciding = member = members.pop(0)
            outcome = await _outcome(batch, member, group)
            self._deciding = None
            if isinstance(outcome, Behind):
                members.insert(0, member)
                self._behind[table_id] = member.sight
                break
            if isinstance(outcome, FilesFirst):
                members.insert(0, member)
                buffers = await self._put_buffered(batch, members, since=certain) and buffers
                certain = len(self._decided)
                continue
            if isinstance(outcome, ManyWinners):
                self.result.own_work.append((member, partial(_check_early, member)))
                continue
            if isinstance(outcome, TakesLong):
                member.alone = member.takes_long = True
                self.result.again.append(member)
                # The others go on in a group that does not wait for what each of them would read.
                break
            self._decided.append((member, outcome))
            if not batch.buffered:
                certain = len(self._decided)
                if members:
                    batch.write_ahead()
        return batch

    async def _is_late(self, in_company: bool) -> bool:
        """Whether no further member is to be decided; others have had a turn meanwhile."""
        now = self._context.monotonic_s()
        if now >= self._yields_at:
            await asyncio.sleep(0)
            self._yields_at = now + YIELDS_S
        if in_company and len(self._decided) >= MEMBERS_IN_COMPANY:
            return True
        return now > (self._until_in_company if in_company else self._until)

    async def _put_buffered(
        self, batch: TableBatch, members: list[WaitingProposal], *, since: int
    ) -> bool:
        """Put the buffered files; True where all could be put. Otherwise the members decided after
        the last file that was put are to be decided again."""
        buffered = batch.buffered
        lost = await batch.put_files(self._context)
        if not lost:
            return True
        kept = since
        for place in range(since, len(self._decided)):
            outcome = self._decided[place][1]
            if isinstance(outcome, Committed) and not outcome.replayed:
                if buffered == lost:
                    break
                buffered -= 1
                kept = place + 1
        void = self._decided[kept:]
        put = [m for m, outcome in void if isinstance(outcome, Committed) and not outcome.replayed]
        for member in put[: batch.in_doubt]:
            # The file may still arrive, whatever comes of the next attempt.
            member.attempt += 1
        members[:0] = [member for member, _ in void]
        del self._decided[kept:]
        return False

    def _missing(self, members: Sequence[WaitingProposal], *, wait: bool) -> None:
        if not wait:
            self.result.busy.extend(members)
            return
        for member in members:
            name = member.table.name
            gone = NotFound(f"there is no table {name} any more", code=Code.TABLE_NOT_FOUND)
            member.tell(true_of_all(member, gone))

    def _tell(self, totals: Mapping[str, TableTotals]) -> None:
        for member, outcome in self._decided:
            if isinstance(outcome, CommitStateUnknown):
                self._retry(member, outcome)
            elif isinstance(outcome, Committed) and not outcome.replayed:
                member.tell(replace(outcome, totals=totals[member.table.id]))
            else:
                member.tell(true_of_all(member, outcome))

    async def _read_on(self, table_id: str, sight: SeenBefore) -> None:
        """Read what was written past the service, without the lock, for as long as the member that
        came first has time."""
        members = self._waiting.pop(table_id)
        patience_s = self._context.commit_deadline_s / 2
        # An end that was seen before says nothing of what was written until another request came.
        shared = sight.without_end() if sight.is_asked else sight
        for member in members:
            if member.sight is not sight:
                member.sight = shared
        try:
            until = min(member.started for member in members) + patience_s
            await read_on(self._context, table_id, sight, until=until)
        except Exception as error:
            for member in members:
                self._fail(member, error)
            return
        for member in members:
            # Its turn had come in time: waiting for another group does not make it overdue.
            member.overdue = False
        self.result.again.extend(members)

    def failed(self, error: Exception) -> None:
        """Retry or tell the members after a transaction whose COMMIT was not sent or not
        answered."""
        alone = len(self._decided) == 1 and self._deciding is None
        for member, _ in self._decided:
            if alone and batches_of(member.table).is_undone_by(error):
                member.tell(error)
                continue
            # COMMIT may have been reached. Only the lock tells: once it is granted again, this
            # transaction has ended, and the next one finds the id or decides anew.
            self._retry(member, error)
        if self._deciding is not None:
            if self._decided and not isinstance(error, Unavailable):
                # The index may have refused another member's values.
                self._retry(self._deciding, error)
            else:
                self._fail(self._deciding, error)
        elif not self._decided:
            for members in self._waiting.values():
                for member in members:
                    self._fail(member, error)
            self._waiting.clear()
        self._leave_waiting()

    def _fail(self, member: WaitingProposal, error: Exception) -> None:
        if isinstance(error, CommitStateUnknown):
            self._retry(member, error)
        else:
            member.tell(true_of_all(member, error))

    def _retry(self, member: WaitingProposal, error: Exception) -> None:
        if not member.may_try_again():
            member.tell(unknown(member, error))
            return
        member.alone = True
        member.attempt += 1
        self.result.again.append(member)

    def _leave_waiting(self) -> None:
        for members in self._waiting.values():
            self.result.again.extend(members)


async def _check_early(member: WaitingProposal) -> None:
    """Check the member against what is committed, for as long as it has time. The member is told of
    an error."""
    context = member.context
    began_s = context.monotonic_s()
    until = member.started + context.commit_deadline_s / 2
    try:
        member.early = await check_early(
            context, member.table.id, member.proposal, member.early, until=until
        )
    except Exception as error:
        member.tell(true_of_all(member, error))
    finally:
        member.check_s += context.monotonic_s() - began_s


async def _outcome(
    batch: TableBatch, member: WaitingProposal, group: CommitGroup
) -> Outcome | Exception:
    """The member's outcome or error. Raises only errors that end the group's transaction."""
    try:
        return await batch.land(member)
    except Exception as error:
        if group.is_over and not group.is_saved:
            raise
        return error
