"""The next version of a table, kept for the writer of a staged commit that came too late.

A staged commit is for one version. Its writer, a stock engine, has checked for conflicts itself,
which takes it as long as many commits of writers who leave that to the service. Beside these it
would lose again and again. So after a staged commit that found its version taken, no group of the
table begins until its writer is back with another one, which then goes first, or `keep_s` are over.
After that no version is kept for as long as the last one was, so that those who wait have at least
half of the time.
"""

import asyncio
from collections.abc import Callable

from tidegate_protocol.base.problems import Code
from tidegate_service.core.commit.queue.table_queue import KeptVersion, TableQueue, who_of
from tidegate_service.core.commit.queue.waiting_proposal import WaitingProposal
from tidegate_service.core.errors import Refused

Go = Callable[[str, TableQueue], None]
"""Called with a table whose groups may begin again."""


class KeptVersions:
    """Those of one queue. `keep_s` of 0 keeps none."""

    def __init__(self, keep_s: float, go: Go) -> None:
        self._keep_s = keep_s
        self._go = go
        # Tables of which none is kept now. A queue ends where nobody waits, its rest does not.
        self._resting: set[str] = set()

    def after(self, member: WaitingProposal, queue: TableQueue) -> None:
        """Keep the next version where the member came too late for its own."""
        loop = asyncio.get_running_loop()
        table_id = member.table.id
        is_resting = table_id in self._resting
        if not self._keep_s or queue.kept is not None or is_resting or not _is_late(member):
            return
        timer = loop.call_later(self._keep_s, self._over, table_id, queue)
        queue.kept = KeptVersion(who_of(member), loop.time(), timer)

    def arrived(self, member: WaitingProposal, queue: TableQueue) -> None:
        """A member waits. It goes first, by itself, where the next version is kept for it."""
        kept = queue.kept
        if kept is None or member.proposal.staged is None or kept.who != who_of(member):
            return
        member.alone = True
        queue.waiting.bring_forward(member)
        self._end(member.table.id, queue, kept)

    def _over(self, table_id: str, queue: TableQueue) -> None:
        assert queue.kept is not None
        self._end(table_id, queue, queue.kept)
        self._go(table_id, queue)

    def _end(self, table_id: str, queue: TableQueue, kept: KeptVersion) -> None:
        kept.timer.cancel()
        queue.kept = None
        loop = asyncio.get_running_loop()
        self._resting.add(table_id)
        loop.call_later(loop.time() - kept.since, self._resting.discard, table_id)


def _is_late(member: WaitingProposal) -> bool:
    answer = member.answer
    if member.proposal.staged is None or not answer.done() or answer.cancelled():
        return False
    error = answer.exception()
    return isinstance(error, Refused) and error.code is Code.VERSION_TAKEN
