"""The next version of a table, kept for the writer of a staged commit that came too late.

A staged commit is for one version. Its writer, a stock engine, checks for conflicts itself.
Meanwhile, writers who leave the check to the service commit many times, so the engine would lose
again and again. So after a staged commit that found its version taken, no group of the table begins
until the engine is back with another staged commit, which then goes first, or the version was kept
several times as long as such writers took of late, `keep_s` at most.

Writers who come too late together are told so one after the other, each when the next version is
kept for it. Told at once, all would stage a commit for the same version, and all but one in vain.
None is held back for longer than `line_s`.

After a version was kept beside proposals that are not staged, none is kept for as long as that one
was, so that other writers have at least half of the time.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, MutableMapping
from typing import TypeVar

from tidegate_service.core.access.roles import share_of
from tidegate_service.core.commit.queue.limits import QueueLimits
from tidegate_service.core.commit.queue.table_queue import (
    Engine,
    KeptVersion,
    LateWriter,
    TableQueue,
    engine_of,
    who_of,
)
from tidegate_service.core.commit.queue.waiting_proposal import WaitingProposal
from tidegate_service.core.context import Context

K = TypeVar("K")
V = TypeVar("V")

Go = Callable[[str, TableQueue], None]
"""Called with a table whose groups may begin again."""
LINE = 100
"""Writers of a table who are held back at a time; whoever comes then is told at once."""
_ENGINES = 1_000
_TIMES = 4.0
_LEAST_S = 0.1
_LESS = 0.9
"""Of a return that took longer than those after it, so much is remembered each time."""


class KeptVersions:
    """The kept versions of one queue. `keep_s` of 0 keeps none, and holds nobody back."""

    def __init__(
        self, queues: MutableMapping[str, TableQueue], limits: QueueLimits, *, go: Go
    ) -> None:
        self._queues = queues
        self._keep_s = limits.keep_s
        self._line_s = limits.line_s
        self._go = go
        # Tables of which no version is kept for now. That outlasts a table's queue.
        self._resting: set[str] = set()
        # Engines of callers whose transactions keep their ids when they are staged anew, as those
        # of Delta Spark do, and how long they took for it. Another commit of these is never taken
        # for one that is waited for.
        self._known: OrderedDict[Engine, float] = OrderedDict()
        # Writers that were not waited for any longer, and since when the version was kept, by table
        # and transaction: an engine that needs longer than it did is known by their return.
        self._missed: OrderedDict[tuple[str, str], tuple[Engine, float]] = OrderedDict()

    async def late(
        self, context: Context, table_id: str, transaction_id: str, engine_info: str | None
    ) -> None:
        """Return when the writer of a staged commit that came too late may be told so: then the
        next version is kept for it, or `line_s` are over. Where it leaves, none is kept for it."""
        if not self._keep_s:
            return
        queue = self._queues.setdefault(table_id, TableQueue())
        if len(queue.late) >= LINE:
            return
        who = share_of(context.caller.principal)
        self._learn(who, table_id, transaction_id)
        self._returned(queue, table_id, who, transaction_id)
        turn = asyncio.get_running_loop().create_future()
        writer = LateWriter(transaction_id, engine_of(who, engine_info), turn)
        queue.late[writer] = None
        self.go_on(table_id, queue)
        self._go(table_id, queue)
        try:
            async with asyncio.timeout(self._line_s):
                await writer.turn
        except TimeoutError:
            return
        except asyncio.CancelledError:
            if queue.kept is not None and queue.kept.writer is writer:
                self._over(table_id, queue)
            raise
        finally:
            if queue.late.pop(writer, self) is not self:
                self.go_on(table_id, queue)
                self._go(table_id, queue)

    def go_on(self, table_id: str, queue: TableQueue) -> None:
        """Keep the next version for the first of those who came too late, unless it is kept, or
        about to be taken. Staged commits that wait are told first: most of them are too late."""
        is_free = queue.kept is None and not queue.busy and table_id not in self._resting
        if not is_free or any(_is_staged(member) for member in queue.waiting):
            return
        loop = asyncio.get_running_loop()
        while queue.late:
            writer, _ = queue.late.popitem(last=False)
            if writer.turn.done():
                # It leaves, and does not know yet.
                continue
            timer = loop.call_later(self._keep_for(writer.engine), self._over, table_id, queue)
            queue.kept = KeptVersion(writer, loop.time(), timer)
            writer.turn.set_result(None)
            return

    def arrived(self, member: WaitingProposal, queue: TableQueue) -> None:
        """A member waits. It goes first, by itself, where the next version is kept for it."""
        kept = queue.kept
        self._learn(who_of(member), member.table.id, member.proposal.transaction_id)
        if kept is None or not _is_staged(member) or kept.writer.engine[0] != who_of(member):
            return
        if member.proposal.transaction_id == kept.writer.transaction_id:
            self._remember(kept.writer.engine, kept.since)
        elif kept.writer.engine in self._known:
            return
        member.alone = True
        queue.waiting.bring_forward(member)
        self._end(member.table.id, queue, kept)

    def _keep_for(self, engine: Engine) -> float:
        """Several times as long as the engine took of late: one that found a conflict gives up."""
        took_s = self._known.get(engine, self._keep_s)
        return min(self._keep_s, max(_LEAST_S, _TIMES * took_s))

    def _learn(self, who: str | None, table_id: str, transaction_id: str) -> None:
        """A writer is back. It may be one that was not waited for long enough."""
        missed = self._missed.get((table_id, transaction_id))
        if missed is not None and missed[0][0] == who:
            del self._missed[table_id, transaction_id]
            self._remember(*missed)

    def _returned(
        self, queue: TableQueue, table_id: str, who: str | None, transaction_id: str
    ) -> None:
        """The writer for which the version is kept may have come too late again: another instance
        has landed it. Nobody else's proposals wait for it any more."""
        kept = queue.kept
        if kept is None or kept.writer.engine[0] != who:
            return
        if kept.writer.transaction_id == transaction_id:
            self._remember(kept.writer.engine, kept.since)
            self._end(table_id, queue, kept)

    def _remember(self, engine: Engine, since: float) -> None:
        took_s = min(asyncio.get_running_loop().time() - since, self._keep_s)
        _put(self._known, engine, max(took_s, _LESS * self._known.get(engine, 0.0)))

    def _over(self, table_id: str, queue: TableQueue) -> None:
        kept = queue.kept
        assert kept is not None
        missed = (table_id, kept.writer.transaction_id)
        _put(self._missed, missed, (kept.writer.engine, kept.since))
        self._end(table_id, queue, kept)
        self.go_on(table_id, queue)
        self._go(table_id, queue)

    def _end(self, table_id: str, queue: TableQueue, kept: KeptVersion) -> None:
        kept.timer.cancel()
        queue.kept = None
        if all(_is_staged(member) for member in queue.waiting):
            return
        loop = asyncio.get_running_loop()
        self._resting.add(table_id)
        loop.call_later(loop.time() - kept.since, self._rested, table_id)

    def _rested(self, table_id: str) -> None:
        self._resting.discard(table_id)
        queue = self._queues.get(table_id)
        if queue is not None:
            self.go_on(table_id, queue)
            self._go(table_id, queue)


def _put(known: OrderedDict[K, V], key: K, value: V) -> None:
    known[key] = value
    known.move_to_end(key)
    if len(known) > _ENGINES:
        known.popitem(last=False)


def _is_staged(member: WaitingProposal) -> bool:
    return member.proposal.staged is not None
