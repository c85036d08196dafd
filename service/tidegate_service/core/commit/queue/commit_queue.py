"""The queue: the proposals that wait, table by table, and the groups that they are decided in.

A group takes the proposals that wait when it may begin. So a lone proposal is decided at once, and
under load groups grow by themselves. After a group that answered several proposals of a table, the
table's next group lingers for a moment: writers that go on at once come back together, and a group
costs as much for one proposal as for two.

Catalog-managed tables share groups, since one Postgres transaction costs about the same for many
tables as for one. The following have groups of their own, so that nobody else waits for them: a
plain table, whose files are written under its lock; a table whose row is locked elsewhere, or whose
log has to be looked into first; a proposal of many actions or with very long predicates. The number
of groups of both kinds is bounded, and so is the number of connections that they use. Groups that
wait for one store, and large proposals, use only a part of these: a store that hangs holds up only
its own tables.

After a staged commit that came too late, its table waits a moment for its writer
(`core.commit.queue.kept_versions`).
"""

import asyncio
import contextvars
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tidegate_protocol.proposal.transaction import Proposal
from tidegate_service.core.commit.queue.kept_versions import KeptVersions
from tidegate_service.core.commit.queue.limits import QueueLimits
from tidegate_service.core.commit.queue.table_queue import (
    GROUP_ACTIONS,
    GROUP_MEMBERS,
    TableQueue,
    is_large,
    weight_of,
    who_of,
)
from tidegate_service.core.commit.queue.waiting_proposal import GroupResult, WaitingProposal, Work
from tidegate_service.core.context import Context
from tidegate_service.core.errors import IndexUnavailable
from tidegate_service.core.instance.table_cache import TableIdentity
from tidegate_service.core.ports.outcomes import Outcome
from tidegate_service.core.sharing.pauses import Pauses
from tidegate_service.core.sharing.shares import check


@dataclass(frozen=True, slots=True)
class _Place:
    """What a group of its own counts for: its store, if it waits for one, and its caller."""

    store: str | None
    who: str | None


RunGroup = Callable[[Sequence[WaitingProposal], bool], Awaitable[GroupResult]]
"""Decides members as one group. The flag is set for members of a single table, whose lock is then
waited for."""

TABLES_OF_ONE = 32
"""Tables of one caller in a shared group: whoever comes next waits until the group has ended, and
that takes longer with each table. Nobody (None) is held back: there is nobody else."""

_NO_STORE = ""
"""Large proposals to catalog-managed tables are counted as if they waited for this one store."""


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
        self._store_of = store_of
        self._queues: dict[str, TableQueue] = {}
        # Tables that somebody waits for and no group runs for, in the order of their turn.
        self._ready: dict[str, None] = {}
        self._shared = 0
        self._own = 0
        self._own_of_store: Counter[str | None] = Counter()
        self._own_of_caller: Counter[str | None] = Counter()
        # For each caller, the number of the beginning at which a table of it was last begun.
        self._begun: dict[str | None, int] = {}
        self._beginnings = 0
        self._waiting = 0
        self._will_start = False
        self._kept = KeptVersions(self._limits.keep_s, self._turn)

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
            self._waiting += 1
            self._kept.arrived(member, queue)
        finally:
            self._turn(table.id, queue)
        loop = asyncio.get_running_loop()
        overdue = loop.call_later(self._limits.wait_s, self._overdue, member)
        try:
            return await member.answer
        finally:
            overdue.cancel()

    def _turn(self, table_id: str, queue: TableQueue) -> None:
        """Make the table ready for a group, unless a group runs for it or no proposal waits."""
        if queue.busy:
            return
        if queue.waiting:
            self._ready[table_id] = None
            self._start_soon()
        elif table_id not in self._ready and queue.linger is None and queue.kept is None:
            del self._queues[table_id]

    def _start_soon(self) -> None:
        # Everything that has arrived by the end of this round of the loop goes together.
        if not self._will_start:
            self._will_start = True
            # No request's variables: each group gets those of its first member.
            loop = asyncio.get_running_loop()
            loop.call_soon(self._start, context=contextvars.Context())

    def _start(self) -> None:
        self._will_start = False
        shared: list[WaitingProposal] = []
        tables_of = Counter[str | None]()
        for table_id in self._in_turn():
            queue = self._queues[table_id]
            if not queue.waiting:
                del self._ready[table_id]
                self._turn(table_id, queue)
            elif queue.lingers or queue.kept is not None:
                continue
            elif queue.needs_own:
                place = _Place(self._store(queue), who_of(queue.waiting.first))
                if self._has_own(place):
                    self._own_by(place, 1)
                    self._begin(self._take(table_id, GROUP_MEMBERS, GROUP_ACTIONS), place)
            elif self._shared < self._limits.shared:
                room = GROUP_MEMBERS - len(shared)
                actions = GROUP_ACTIONS - sum(map(weight_of, shared))
                who = who_of(queue.waiting.first)
                is_full = who is not None and tables_of[who] >= TABLES_OF_ONE
                if room > 0 and actions > 0 and not is_full:
                    tables_of[who] += 1
                    shared += self._take(table_id, room, actions)
        if shared:
            self._shared += 1
            self._begin(shared, None)
            if self._ready and self._shared < self._limits.shared:
                # For the tables that had no room in this group.
                self._start_soon()

    def _in_turn(self) -> Iterable[str]:
        """The ready tables in the order of their turns: one table of each caller, then the next of
        each. The caller whose table was begun longest ago comes first."""
        of_callers: dict[str | None, list[str]] = {}
        for table_id in self._ready:
            waiting = self._queues[table_id].waiting
            of_callers.setdefault(who_of(waiting.first) if waiting else None, []).append(table_id)
        self._begun = {who: self._begun.get(who, 0) for who in of_callers}
        callers = sorted(of_callers, key=self._begun.__getitem__)
        turns = itertools.zip_longest(*(of_callers[who] for who in callers))
        return [table_id for turn in turns for table_id in turn if table_id is not None]

    def _has_own(self, place: _Place) -> bool:
        limits = self._limits
        return (
            self._own < limits.own
            and (place.store is None or self._own_of_store[place.store] < limits.own_of_a_store)
            and (place.who is None or self._own_of_caller[place.who] < limits.own_of_a_caller)
        )

    def _own_by(self, place: _Place, more: int) -> None:
        self._own += more
        for count, key in ((self._own_of_store, place.store), (self._own_of_caller, place.who)):
            count[key] += more
            if not count[key]:
                del count[key]

    def _store(self, queue: TableQueue) -> str | None:
        """The store that the table's next group may wait for, if any. It may also wait for a lock
        whose holder waits for the store."""
        table = queue.waiting.first.table
        if table.catalog_managed and not (queue.is_due or queue.own):
            return _NO_STORE if is_large(queue.waiting.first) else None
        return self._store_of(table.location)

    def _take(self, table_id: str, room: int, actions: int) -> list[WaitingProposal]:
        queue = self._queues[table_id]
        del self._ready[table_id]
        queue.busy = True
        queue.end_linger()
        self._beginnings += 1
        self._begun[who_of(queue.waiting.first)] = self._beginnings
        members = queue.take(room, actions)
        self._waiting -= len(members)
        return members

    def _begin(self, members: list[WaitingProposal], place: _Place | None) -> None:
        """Run a group. `place` is given for a group of its own."""
        self._run(members[0], self._group(members, place))

    def _run(self, member: WaitingProposal, work: Coroutine[Any, Any, None]) -> None:
        name, variables = member.proposal.transaction_id, member.variables.copy()
        member.context.running.start(work, name=name, variables=variables)

    async def _group(self, members: list[WaitingProposal], place: _Place | None) -> None:
        result = GroupResult()
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            for member in members:
                member.begun()
            result = await self._run_group(members, place is not None)
        except BaseException as error:
            # Whatever the error was, every member gets an answer.
            for member in members:
                member.tell(error)
            if not isinstance(error, Exception):
                raise
        finally:
            if place is not None:
                self._own_by(place, -1)
            else:
                self._shared -= 1
            tables = dict.fromkeys(member.table.id for member in members)
            for table_id in tables:
                queue = self._queues[table_id]
                queue.busy = False
                queue.own = queue.unsure = False
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
            for member in members:
                self._kept.after(member, self._queues[member.table.id])
            for member, work in result.own_work:
                self._run(member, self._do_own_work(member, work))
            if not left:
                linger_s = min(loop.time() - began, self._limits.linger_s)
                for table_id, told in Counter(member.table.id for member in members).items():
                    if told > 1:
                        self._linger(table_id, told, linger_s)
            for table_id in tables:
                self._turn(table_id, self._queues[table_id])
            if self._ready:
                self._start_soon()

    async def _do_own_work(self, member: WaitingProposal, work: Work) -> None:
        """Do the member's own work while others are decided, and have it wait again after that."""
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

    def _linger(self, table_id: str, told: int, linger_s: float) -> None:
        """Have the table's next group wait until as many proposals are there as were told together,
        for at most `linger_s`. A group that is full already does not wait."""
        queue = self._queues[table_id]
        if queue.is_full:
            return
        queue.returning = min(len(queue.waiting) + told, GROUP_MEMBERS)
        queue.linger = asyncio.get_running_loop().call_later(
            linger_s, self._end_linger, table_id, queue, context=contextvars.Context()
        )

    def _end_linger(self, table_id: str, queue: TableQueue) -> None:
        queue.linger = None
        self._turn(table_id, queue)

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

    def _tell_overdue(self, member: WaitingProposal) -> None:
        member.tell(
            IndexUnavailable(
                f"earlier commits to this table took more than {self._limits.wait_s} s"
            )
        )
