"""Commit sections run in tasks of their own, so that a client that goes away cannot cut one.

A request awaits its section through a shield: cancelling the request leaves the section to
its end, and a stopping instance waits for the sections under way before it closes anything.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from tidegate_service.core.errors import ShuttingDown

T = TypeVar("T")

SectionKey = tuple[str, str]
"""(table id, transaction id)"""


class CommitSections:
    """Owns every commit section of this instance.

    `under_way` says which transactions are being decided here right now; another instance's
    are not known.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._keys: dict[SectionKey, int] = {}
        self._closed = False

    def under_way(self, key: SectionKey) -> bool:
        """True while a section of this transaction runs in this process."""
        return key in self._keys

    @property
    def count(self) -> int:
        """How many run now."""
        return len(self._tasks)

    async def run(self, key: SectionKey, section: Coroutine[Any, Any, T]) -> T:
        """Run a section to its end whatever happens to the caller, and return its result.

        Raises `ShuttingDown` once `drain` has been called; the section is then not started.
        """
        if self._closed:
            section.close()
            raise ShuttingDown("this instance is stopping and takes no new commits")
        task = asyncio.create_task(self._counted(key, section), name=f"commit-{key[1]}")
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    async def drain(self, *, timeout_s: float) -> bool:
        """Take no new sections and wait for those under way; False if some did not end."""
        self._closed = True
        if not self._tasks:
            return True
        _, pending = await asyncio.wait(self._tasks, timeout=timeout_s)
        return not pending

    async def _counted(self, key: SectionKey, section: Coroutine[Any, Any, T]) -> T:
        self._keys[key] = self._keys.get(key, 0) + 1
        try:
            return await section
        finally:
            left = self._keys[key] - 1
            if left:
                self._keys[key] = left
            else:
                del self._keys[key]

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            # A section whose caller has gone has nobody to raise to; reading the exception here
            # keeps asyncio from reporting it as never retrieved. Callers still get theirs.
            task.exception()
