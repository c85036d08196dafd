"""Threads by what they are for, so that no work of one kind waits for another kind's.

What commits wait for has the rest: the threads of `core.sharing.offload`, and those in which files
are written, and small ones read and listed.
"""

import asyncio
import contextvars
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, TypeVarTuple, Unpack

from tidegate_service.core.sharing import offload
from tidegate_service.core.sharing.turns import Turns

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


WORK_S = 0.002
REST = 2
"""Times as long as it has worked."""
MOST_REST_S = 0.1


class Rests:
    """To be called again and again by long work in a thread: after `WORK_S` it leaves the
    interpreter to others for `REST` times as long. Taking turns at it as often as others ask would
    have each of them wait for this thread whenever it has read from a socket or written to one.

    What it has worked is told by the clock: where the machine is busy, a thread holds the
    interpreter while the system has another process run, for much longer than it computes."""

    def __init__(
        self,
        *,
        now_s: Callable[[], float] = time.perf_counter,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._now_s = now_s
        self._sleep = sleep
        self._since = now_s()

    def __call__(self) -> None:
        worked_s = self._now_s() - self._since
        if worked_s >= WORK_S:
            self._sleep(min(REST * worked_s, MOST_REST_S))
            self._since = self._now_s()


class Pool:
    """A few threads, because all share one interpreter. Principals have them in turn, each for one
    piece of work, so a piece should take milliseconds. Of one event loop."""

    def __init__(self, name: str, threads: int) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=f"tidegate-{name}")
        self._turns = Turns(threads)

    def of(self, principal: str) -> "Share":
        return Share(self, principal)

    async def run(self, principal: str, work: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
        """The result of `work(*args)`. Whoever is cancelled leaves at once: what has not begun is
        not done, and what has keeps its thread to its end."""
        with offload.sharing:
            await self._turns.take(principal)
            variables = contextvars.copy_context()
            doing = asyncio.get_running_loop().run_in_executor(
                self._threads, partial(variables.run, work, *args)
            )
            doing.add_done_callback(self._done)
            # Not the thread's work itself, which would be told to be over while it goes on.
            await asyncio.wait([doing])
            return doing.result()

    def _done(self, doing: asyncio.Future[Any]) -> None:
        self._turns.end()
        if not doing.cancelled():
            # Whoever waits is told; nobody else is.
            doing.exception()


@dataclass(frozen=True, slots=True)
class Share:
    """What a principal has of a pool; nobody's is that of ''."""

    pool: Pool
    principal: str

    @property
    def who(self) -> str | None:
        """The principal; None for nobody."""
        return self.principal or None

    async def run(self, work: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
        """As of the pool."""
        return await self.pool.run(self.principal, work, *args)

    async def run_rested(self, work: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
        """The same, after which the thread leaves the interpreter to others if it took long."""
        return await self.run(_rested, work, *args)


def _rested(work: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
    rests = Rests()
    try:
        return work(*args)
    finally:
        rests()
