"""Who is decided with whom: the proposals that wait, table by table, and the groups they go in.

What waits when a group may begin is the group, so a proposal that is alone is decided at once, and
under load groups grow by themselves. Only where several were answered together does their table's
next group wait for a moment: writers that go on at once come back together, and a group costs as
much for one of them as for two.

Catalog-managed tables share groups, since one Postgres transaction costs about the same for many
tables as for one. A plain table, whose files are written under its lock, a table whose lock is
held elsewhere and a proposal of many actions have groups of their own, so that nobody else waits
for what they wait for. Both kinds of groups are bounded, by which the database's connections are,
and a store's plain tables leave some of theirs to others': a store that hangs holds up its own.
"""

import asyncio
import contextvars
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from tidegate_protocol.problems import Code
from tidegate_service.core.errors import IndexUnavailable, Unavailable
from tidegate_service.core.member import GroupResult, Member
from tidegate_service.core.outcomes import Outcome

Together = Callable[[Sequence[Member], bool], Awaitable[GroupResult]]
"""Decides members together; the flag says whether to wait for their table's lock, which is then
the only one."""

GROUP_MEMBERS = 256
GROUP_ACTIONS = 2_000
"""Bounds of one group. A proposal of more actions is decided alone."""
RETURN_S = 0.02
"""A table waits for those who were just answered for so long at most, and not for longer than their
group took, but for a last `quiet_s`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitterLimits:
    """`shared` and `own` groups run at once; of `own`, the plain tables of one store have all but a
    quarter, and but one at least where there are two. `waiting` proposals wait for a table before
    further ones are turned away, each for `wait_s` at most. A table stops waiting for those who
    were just answered when nobody came for `quiet_s`."""

    shared: int = 2
    own: int = 12
    waiting: int = 500
    wait_s: float = 10.0
    quiet_s: float = 0.001

    @property
    def own_of_a_store(self) -> int:
        return self.own - max(self.own // 4, min(1, self.own - 1))


@dataclass(slots=True)
class _Queue:
    """One table's. `own` is set once its lock was found held. While there is a next `look`, its
    next group waits for it to hold `returning` proposals; `seen` were there at the last one."""

    waiting: deque[Member] = field(default_factory=deque)
    busy: bool = False
    own: bool = False
    look: asyncio.TimerHandle | None = None
    returning: int = 0
    seen: int = 0

    @property
    def is_held(self) -> bool:
        return self.look is not None and len(self.waiting) < self.returning

    @property
    def is_full(self) -> bool:
        """Whether those who wait fill a group."""
        if self.waiting and (self.waiting[0].alone or _is_large(self.waiting[0])):
            return True
        return sum(len(member.proposal.actions) for member in self.waiting) >= GROUP_ACTIONS

    def let_go(self) -> None:
        if self.look is not None:
            self.look.cancel()
            self.look = None

    @property
    def needs_own(self) -> bool:
        first = self.waiting[0]
        return self.own or first.alone or _is_large(first) or not first.table.catalog_managed

    def take(self, room: int, actions: int) -> list[Member]:
        """The first of those who wait, as many as may go together. An id that is named twice
        waits for what becomes of its first copy."""
        taken: list[Member] = []
        ids: set[str] = set()
        left: deque[Member] = deque()
        while self.waiting and len(taken) < room:
            member = self.waiting[0]
            actions -= len(member.proposal.actions)
            if taken and (actions < 0 or member.alone or _is_large(member)):
                break
            self.waiting.popleft()
            if member.proposal.transaction_id in ids:
                left.append(member)
                continue
            ids.add(member.proposal.transaction_id)
            taken.append(member)
            if member.alone:
                break
        self.waiting.extendleft(reversed(left))
        return taken


class Committer:
    """One instance's proposals. Of one event loop; what keeps instances apart is the row lock."""

    def __init__(
        self,
        together: Together,
        limits: CommitterLimits | None = None,
        *,
        store_of: Callable[[str], str] = lambda location: "the only one",
    ) -> None:
        self._together = together
        self._limits = limits or CommitterLimits()
        self._store_of = store_of
        self._queues: dict[str, _Queue] = {}
        # Tables that somebody waits for and no group runs for, in the order of their turn.
        self._ready: dict[str, None] = {}
        self._shared = 0
        self._own = 0
        self._own_of: Counter[str | None] = Counter()
        self._waiting = 0
        self._will_start = False

    @property
    def waiting(self) -> int:
        """How many proposals wait for their turn now, over all tables."""
        return self._waiting

    async def commit(self, member: Member) -> Outcome:
        """The member's outcome. Cancelling this does not cancel the commit.

        Raises what the member is told, `ShuttingDown`, and `Unavailable` (`backpressure`) where
        too many wait for the table already.
        """
        table = member.table
        queue = self._queues.setdefault(table.id, _Queue())
        try:
            if len(queue.waiting) >= self._limits.waiting:
                raise Unavailable(
                    f"{len(queue.waiting)} proposals wait for table {table.name}, as many as may; "
                    "nothing was done",
                    code=Code.BACKPRESSURE,
                )
            member.enter()
            queue.waiting.append(member)
            self._waiting += 1
        finally:
            self._turn(table.id, queue)
        loop = asyncio.get_running_loop()
        overdue = loop.call_later(self._limits.wait_s, self._overdue, queue, member)
        try:
            return await member.answer
        finally:
            overdue.cancel()

    def _turn(self, table_id: str, queue: _Queue) -> None:
        """The table waits for a group, unless one runs for it or nobody waits."""
        if queue.busy:
            return
        if queue.waiting:
            self._ready[table_id] = None
            self._start_soon()
        elif table_id not in self._ready and queue.look is None:
            del self._queues[table_id]

    def _start_soon(self) -> None:
        # Everything that has arrived by the end of this round of the loop goes together.
        if not self._will_start:
            self._will_start = True
            # Of nobody's request: each group gets the variables of its first member.
            loop = asyncio.get_running_loop()
            loop.call_soon(self._start, context=contextvars.Context())

    def _start(self) -> None:
        self._will_start = False
        shared: list[Member] = []
        for table_id in list(self._ready):
            queue = self._queues[table_id]
            if not queue.waiting:
                del self._ready[table_id]
                self._turn(table_id, queue)
            elif queue.is_held:
                continue
            elif queue.needs_own:
                if self._own < self._limits.own and self._has_own(
                    store := self._store(queue.waiting[0])
                ):
                    self._own += 1
                    self._own_of[store] += 1
                    self._begin(self._take(table_id, GROUP_MEMBERS, GROUP_ACTIONS), own=True)
            elif self._shared < self._limits.shared:
                room = GROUP_MEMBERS - len(shared)
                actions = GROUP_ACTIONS - sum(len(m.proposal.actions) for m in shared)
                if room > 0 and actions > 0:
                    shared += self._take(table_id, room, actions)
        if shared:
            self._shared += 1
            self._begin(shared, own=False)
            if self._ready and self._shared < self._limits.shared:
                # What had no room in this one.
                self._start_soon()

    def _has_own(self, store: str | None) -> bool:
        return store is None or self._own_of[store] < self._limits.own_of_a_store

    def _store(self, member: Member) -> str | None:
        """Which store its group waits for, if any."""
        table = member.table
        return None if table.catalog_managed else self._store_of(table.location)

    def _take(self, table_id: str, room: int, actions: int) -> list[Member]:
        queue = self._queues[table_id]
        del self._ready[table_id]
        queue.busy = True
        queue.let_go()
        members = queue.take(room, actions)
        self._waiting -= len(members)
        return members

    def _begin(self, members: list[Member], *, own: bool) -> None:
        first = members[0]
        first.context.sections.start(
            self._group(members, own=own),
            name=first.proposal.transaction_id,
            variables=first.variables.copy(),
        )

    async def _group(self, members: list[Member], *, own: bool) -> None:
        again, busy = list[Member](), list[Member]()
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            for member in members:
                member.begun()
            result = await self._together(members, own)
            again, busy = result.again, result.busy
        except BaseException as error:
            # Whatever it was, nobody is left without an answer.
            for member in members:
                member.tell(error)
            if not isinstance(error, Exception):
                raise
        finally:
            if own:
                self._own -= 1
                self._own_of[self._store(members[0])] -= 1
            else:
                self._shared -= 1
            tables = dict.fromkeys(member.table.id for member in members)
            for table_id in tables:
                queue = self._queues[table_id]
                queue.busy = False
                queue.own = False
            for member in busy:
                self._queues[member.table.id].own = True
            for member in reversed((*again, *busy)):
                if member.overdue and member.attempt == 1:
                    self._tell_overdue(member)
                    continue
                self._queues[member.table.id].waiting.appendleft(member)
                self._waiting += 1
            now = loop.time()
            if not again and not busy:
                until = now + min(now - began, RETURN_S)
                for table_id, told in Counter(member.table.id for member in members).items():
                    if told > 1:
                        self._hold(table_id, told, until)
            for table_id in tables:
                self._turn(table_id, self._queues[table_id])
            if self._ready:
                self._start_soon()

    def _hold(self, table_id: str, told: int, until: float) -> None:
        """Have the table wait for those who were told together, unless its next group has no room
        for them."""
        queue = self._queues[table_id]
        if queue.is_full:
            return
        queue.returning = min(len(queue.waiting) + told, GROUP_MEMBERS)
        self._look_later(table_id, queue, until)

    def _look_later(self, table_id: str, queue: _Queue, until: float) -> None:
        queue.seen = len(queue.waiting)
        queue.look = asyncio.get_running_loop().call_later(
            self._limits.quiet_s,
            self._look,
            table_id,
            queue,
            until,
            context=contextvars.Context(),
        )

    def _look(self, table_id: str, queue: _Queue, until: float) -> None:
        """Let go of the table, unless more have come since the last look."""
        queue.look = None
        if len(queue.waiting) > queue.seen and asyncio.get_running_loop().time() < until:
            self._look_later(table_id, queue, until)
        else:
            self._turn(table_id, queue)

    def _overdue(self, queue: _Queue, member: Member) -> None:
        """Nobody waits for ever: what was never begun is known not to have happened."""
        if member.attempt > 1:
            return
        if member not in queue.waiting:
            # Its group may not get round to it.
            member.overdue = True
            return
        queue.waiting.remove(member)
        self._waiting -= 1
        self._tell_overdue(member)

    def _tell_overdue(self, member: Member) -> None:
        member.tell(
            IndexUnavailable(
                f"earlier commits to this table took more than {self._limits.wait_s} s"
            )
        )


def _is_large(member: Member) -> bool:
    return len(member.proposal.actions) > GROUP_ACTIONS
