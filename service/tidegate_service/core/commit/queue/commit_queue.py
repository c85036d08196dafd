"""The queue: the proposals that wait, table by table, and the groups that they are decided in.

A group takes the proposals that wait when it may begin. So a lone proposal is decided at once, and
under load groups grow by themselves. After a group that answered several proposals of a table, the
table's next group lingers for a moment: writers that go on at once come back together, and a group
costs as much for one proposal as for two.

Catalog-managed tables share groups, since one Postgres transaction costs about the same for many
tables as for one. The following have groups of their own, so that nobody else waits for them: a
plain table, whose files are written under its lock; a table whose row is locked elsewhere, or whose
log has to be checked first; a proposal of many actions or with very long predicates. The number of
groups of both kinds is bounded, and so is the number of connections that they use. Groups that wait
for one store, and large proposals, use only a part of these: a store that hangs holds up only its
own tables. A caller that keeps the event loop busy rests between shared groups, and has fewer of
its own (`busy_callers`). Late writers of staged commits are told so in turns (`kept_versions`).
"""

import asyncio
import contextvars
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from tidegate_protocol.proposal.transaction import Proposal
from tidegate_service.core.commit.queue.kept_versions import KeptVersions
from tidegate_service.core.commit.queue.limits import QueueLimits
from tidegate_service.core.commit.queue.ready_tables import Need, ReadyTables
from tidegate_service.core.commit.queue.running_groups import Place, RunningGroups
from tidegate_service.core.commit.queue.table_queue import (
    GROUP_ACTIONS,
    GROUP_MEMBERS,
    TableQueue,
    weight_of,
    who_of,
)
from tidegate_service.core.commit.queue.waiting_proposal import (
    GroupResult,
    InCompany,
    WaitingProposal,
    Work,
    heads_left_by,
)
from tidegate_service.core.context import Context
from tidegate_service.core.errors import IndexUnavailable, Overtaken
from tidegate_service.core.ports.kinds import TableIdentity
from tidegate_service.core.ports.outcomes import Outcome
from tidegate_service.core.ports.records import TableHead
from tidegate_service.core.sharing.pauses import Pauses
from tidegate_service.core.sharing.shares import check

RunGroup = Callable[[Sequence[WaitingProposal], bool, InCompany], Awaitable[GroupResult]]
"""Decides members as one group. The flag is set for members of a single table, whose lock is then
waited for: a group of its own, which is to end soon where others wait."""


class CommitQueue:
    """One instance's proposals, of one event loop. Between instances the row lock decides.

    Proposals to a table that is paused (`pauses`) wait before they are queued.
    """

    def __init__(
        self,
        run_group: RunGroup,
        limits: QueueLimits | None = None,
        *,
        store_of: Callable[[str], str] = lambda location: "the only one",
        pauses: Pauses | None = None,
    ) -> None:
        self._pauses = Pauses() if pauses is None else pauses
        self._run_group = run_group
        self._limits = limits or QueueLimits()
        self._queues: dict[str, TableQueue] = {}
        self._ready = ReadyTables(store_of)
        self._running = RunningGroups(self._limits)
        self._waiting = 0
        self._will_start = False
        self.kept = KeptVersions(self._queues, self._limits, go=self._turn)

    @property
    def waiting(self) -> int:
        """How many proposals wait for their turn now, over all tables."""
        return self._waiting

    async def commit(self, context: Context, table: TableIdentity, proposal: Proposal) -> Outcome:
        """The proposal's outcome; raises as `wait` does."""
        await self._pauses.ended(table.id)
        return await self.wait(
            WaitingProposal(
                context=context,
                table=table,
                proposal=proposal,
                started=context.monotonic_s(),
                variables=contextvars.copy_context(),
                answer=asyncio.get_running_loop().create_future(),
            )
        )

    async def wait(self, member: WaitingProposal) -> Outcome:
        """The member's outcome. Cancelling this does not cancel the commit.

        Raises what the member is told, `ShuttingDown`, and `Unavailable` (`backpressure`) where
        too many wait for the table already.
        """
        table = member.table
        queue = self._queues.setdefault(table.id, TableQueue())
        try:
            check(
                f"proposals that wait for table {table.name}",
                most=self._limits.waiting,
                taken=len(queue.waiting) + 1,
                mine=queue.waiting.of(who := who_of(member)) + 1,
                who=who,
            )
            member.enter()
            queue.waiting.append(member)
            queue.came[who] = asyncio.get_running_loop().time()
            self._waiting += 1
            self.kept.arrived(member, queue)
        finally:
            self._turn(table.id, queue)
        loop = asyncio.get_running_loop()
        overdue = loop.call_later(self._limits.wait_s, self._overdue, member)
        try:
            return await member.answer
        finally:
            overdue.cancel()

    def _turn(self, table_id: str, queue: TableQueue) -> None:
        """Make the table ready for a group, unless a group runs for it, or none may begin yet, or
        no proposal waits."""
        if queue.busy:
            return
        if not queue.waiting:
            self._ready.discard(table_id)
            if not (queue.linger or queue.kept or queue.late):
                del self._queues[table_id]
        elif queue.lingers or queue.kept is not None:
            self._ready.discard(table_id)
        elif self._ready.put(table_id, queue):
            self._start_soon()

    def _start_soon(self) -> None:
        # Everything that has arrived by the end of this round of the loop goes together.
        if not self._will_start:
            self._will_start = True
            # No request's variables: a group gets those of its first member.
            loop = asyncio.get_running_loop()
            loop.call_soon(self._start, context=contextvars.Context())

    def _start(self) -> None:
        self._will_start = False
        shared: list[WaitingProposal] = []
        room, actions = GROUP_MEMBERS, self._running.most_shared_actions
        tables_of, now = Counter[str | None](), asyncio.get_running_loop().time()

        def may_begin(who: str | None, need: Need) -> bool:
            has_room = need.own or (room > 0 and actions > 0)
            return has_room and self._running.may_begin(who, need, tables_of[who], now)

        for table_id, turn in self._ready.in_turn(may_begin):
            queue = self._queues[table_id]
            if (found := self._beginning(queue, may_begin)) is None:
                if self._ready.put(table_id, queue):
                    self._start_soon()  # What it needs has changed with time.
                continue
            who, need = found
            queue.begin_with(who)
            self._ready.begun(turn)
            if need.own:
                place = Place(need.store, who, now)
                self._running.own.append(place)
                self._begin(self._take(table_id, queue.most_own(now), GROUP_ACTIONS), place)
            else:
                tables_of[who] += 1
                taken = self._take(table_id, room, actions)
                shared += taken
                room -= len(taken)
                actions -= sum(map(weight_of, taken))
        if shared:
            self._running.begin_shared(shared)
            self._begin(shared, None)
            if self._ready and self._running.may_share:
                self._start_soon()  # For the tables that had no room in this group.

    def _beginning(
        self, queue: TableQueue, may_begin: Callable[[str | None, Need], bool]
    ) -> tuple[str | None, Need] | None:
        """The first caller for whom the table's next group may begin, and what that needs. Others'
        go along: who shares a table with a flood waits for that table alone."""
        for who in queue.waiting.callers:
            need = self._ready.need(queue, queue.waiting.first_of(who))
            if may_begin(who, need):
                return who, need
            if need.own and not self._running.has_its_share(who):
                return None  # It is next: passed by again and again, it would find no place.
        return None

    def _take(self, table_id: str, room: int, actions: int) -> list[WaitingProposal]:
        queue = self._queues[table_id]
        self._ready.discard(table_id)
        queue.busy = True
        queue.end_linger()
        members = queue.take(room, actions)
        self._waiting -= len(members)
        return members

    def _begin(self, members: list[WaitingProposal], place: Place | None) -> None:
        """Run a group. `place` is given for a group of its own."""
        self._run(members[0], self._group(members, place))

    def _run(self, member: WaitingProposal, work: Coroutine[Any, Any, None]) -> None:
        name, variables = member.proposal.transaction_id, member.variables.copy()
        member.context.running.start(work, name=name, variables=variables)

    async def _group(self, members: list[WaitingProposal], place: Place | None) -> None:
        result, stopped = GroupResult(), None
        began = (loop := asyncio.get_running_loop()).time()
        try:
            for member in members:
                member.begun()
            in_company = self._in_company(members, place)
            result = await self._run_group(members, place is not None, in_company)
        except GeneratorExit:
            raise  # Its loop was closed: nobody waits in it.
        except BaseException as error:
            # Whatever the error was, every member gets an answer.
            for member in members:
                member.tell(error)
            stopped = None if isinstance(error, Exception) else error
        if place is not None:
            self._running.end_own(place, members, loop.time())
        else:
            busy = self._running.end_shared(members, loop.time())
            if busy:
                rest_s = min(loop.time() - began, self._limits.rest_s)
                loop.call_later(rest_s, self._end_rest, busy, context=contextvars.Context())
        tables = dict.fromkeys(member.table.id for member in members)
        for table_id in tables:
            self._queues[table_id].end_group()
        for member in result.busy:
            self._queues[member.table.id].own = True
        for member in result.unsure:
            self._queues[member.table.id].unsure = True
        left = (*result.again, *result.busy, *result.unsure)
        for member in reversed(left):
            if member.overdue and member.attempt == 1:
                self._tell_overdue(member)
                continue
            self._queues[member.table.id].waiting.put_back(member)
            self._waiting += 1
        for member, work in result.own_work:
            self._run(member, self._do_own_work(member, work))
        if not left:
            linger_s = min(loop.time() - began, self._limits.linger_s)
            for table_id, told in Counter(member.table.id for member in members).items():
                if told > 1:
                    queue = self._queues[table_id]
                    most = GROUP_MEMBERS if place is None else queue.most_own(loop.time())
                    self._linger(table_id, min(len(queue.waiting) + told, most), linger_s)
        for table_id, head in heads_left_by(members).items():
            self._tell_overtaken(self._queues[table_id], head)
        for table_id in tables:
            self.kept.go_on(table_id, queue := self._queues[table_id])
            self._turn(table_id, queue)
        if self._ready:
            self._start_soon()
        if stopped is not None:
            raise stopped

    def _in_company(self, members: Sequence[WaitingProposal], place: Place | None) -> InCompany:
        if place is None:
            return lambda: False
        queue, loop = self._queues[members[0].table.id], asyncio.get_running_loop()
        return lambda: queue.in_company(loop.time())

    async def _do_own_work(self, member: WaitingProposal, work: Work) -> None:
        """Do its own work while others are decided, and have the member wait again after that."""
        try:
            await work()
        except BaseException as error:
            member.tell(error)
            raise
        if member.told:
            return
        # Its turn had come in time.
        member.overdue = False
        queue = self._queues.setdefault(member.table.id, TableQueue())
        queue.waiting.put_back(member)
        self._waiting += 1
        self._turn(member.table.id, queue)

    def _linger(self, table_id: str, returning: int, linger_s: float) -> None:
        """Have the table's next group wait until so many proposals are there, for at most
        `linger_s`: those that wait, and as many as were told together. A group that is full already
        does not wait."""
        queue = self._queues[table_id]
        if queue.is_full:
            return
        queue.returning = returning
        queue.linger = asyncio.get_running_loop().call_later(
            linger_s, self._end_linger, table_id, queue, context=contextvars.Context()
        )

    def _end_linger(self, table_id: str, queue: TableQueue) -> None:
        queue.linger = None
        self._turn(table_id, queue)

    def _end_rest(self, callers: frozenset[str]) -> None:
        self._running.busy.end_rest(callers)
        self._start_soon()

    def _overdue(self, member: WaitingProposal) -> None:
        """End a wait that took too long: a proposal that was never begun is known not to have
        happened."""
        if member.attempt > 1:
            return
        queue = self._queues.get(member.table.id)
        if queue is None or member not in queue.waiting:
            # Its group may not get round to it.
            member.overdue = True
            return
        queue.waiting.remove(member)
        self._waiting -= 1
        self._tell_overdue(member)
        self._turn(member.table.id, queue)

    def _tell_overtaken(self, queue: TableQueue, head: TableHead) -> None:
        """Tell the staged commits that wait for a version which the head has by now: no group could
        land them, and they would hold up the next one. A commit whose COMMIT got no answer is sent
        again (`attempt`) and may be that version itself, so it goes on to the lock."""
        for member in list(queue.waiting):
            staged = member.proposal.staged
            if staged is None or staged.version > head.latest_version or member.attempt > 1:
                continue
            queue.waiting.remove(member)
            self._waiting -= 1
            member.tell(Overtaken(f"version {staged.version} of {head.name} is taken"))

    def _tell_overdue(self, member: WaitingProposal) -> None:
        member.tell(
            IndexUnavailable(
                f"earlier commits to this table took more than {self._limits.wait_s} s"
            )
        )
