"""Commit sections run in tasks of their own, so that a client that goes away cannot cut one.

A request waits for its section's result only: cancelling the request leaves the section to its
end, and a stopping instance waits for the sections under way before it closes anything.
"""

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar, cast

from tidegate_service.core.errors import ShuttingDown

T = TypeVar("T")

SectionKey = tuple[str, str]
"""A table's id and a transaction's, or the name of what the service does and what it does it to. No
table has such an id, and a transaction may have any."""


class RunningCommits:
    """Owns every commit section of this instance.

    `under_way` says which transactions are being decided here right now; another instance's
    are not known.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._keys: dict[SectionKey, int] = {}
        self._shared: dict[SectionKey, asyncio.Task[Any]] = {}
        self._closed = False
        self._idle = asyncio.Event()

    def under_way(self, key: SectionKey) -> bool:
        """True while a section of this transaction waits or runs in this process."""
        return key in self._keys

    @property
    def count(self) -> int:
        """How many transactions are under way now."""
        return sum(self._keys.values())

    def enter(self, key: SectionKey) -> None:
        """A transaction is under way from now on, until `leave`.

        Raises `ShuttingDown` once `drain` has been called.
        """
        if self._closed:
            raise ShuttingDown("this instance is stopping and takes no new commits")
        self._keys[key] = self._keys.get(key, 0) + 1

    def leave(self, key: SectionKey) -> None:
        """The transaction has ended, as `enter` said it began."""
        left = self._keys[key] - 1
        if left:
            self._keys[key] = left
        else:
            del self._keys[key]
            self._check_idle()

    async def run(self, key: SectionKey, section: Coroutine[Any, Any, T]) -> T:
        """Run a section to its end whatever happens to the caller, and return its result.

        Raises `ShuttingDown` once `drain` has been called; the section is then not started.
        """
        try:
            self.enter(key)
        except ShuttingDown:
            section.close()
            raise
        return await asyncio.shield(self.start(self._counted(key, section), name=" ".join(key)))

    async def run_once(self, key: SectionKey, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """As `run`, of the section that is made. Whoever asks for the same key while it runs waits
        for its end and has its result."""
        task = self._shared.get(key)
        # One that has ended is not waited for, though its callbacks are still to come.
        if task is None or task.done():
            self.enter(key)
            task = self._shared[key] = self.start(self._counted(key, make()), name=" ".join(key))
            task.add_done_callback(partial(self._end_shared, key))
        return cast(T, await asyncio.shield(task))

    def start(
        self,
        section: Coroutine[Any, Any, T],
        *,
        name: str,
        variables: contextvars.Context | None = None,
    ) -> asyncio.Task[T]:
        """A task that `drain` waits for, of transactions that have entered. `variables` are what
        it sees; by default a copy of the caller's."""
        task = asyncio.create_task(section, name=f"commit-{name}", context=variables)
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return task

    async def drain(self, *, timeout_s: float) -> bool:
        """Take no new sections and wait for those under way; False if some did not end."""
        self._closed = True
        self._check_idle()
        try:
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True

    async def _counted(self, key: SectionKey, section: Coroutine[Any, Any, T]) -> T:
        try:
            return await section
        finally:
            self.leave(key)

    def _end_shared(self, key: SectionKey, task: asyncio.Task[Any]) -> None:
        if self._shared.get(key) is task:
            del self._shared[key]

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            # A section whose caller has gone has nobody to raise to; reading the exception here
            # keeps asyncio from reporting it as never retrieved. Callers still get theirs.
            task.exception()
        self._check_idle()

    def _check_idle(self) -> None:
        if self._closed and not self._tasks and not self._keys:
            self._idle.set()
