"""Checkpoints that callers have asked this instance for.

One is written in a task of its own, which goes on where its callers leave, and keeps its places to
its end: else whoever asks and leaves, again and again, would have any number of them written.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Generic, TypeVar

from tidegate_service.core.instance.running_commits import RunningCommits
from tidegate_service.core.sharing.turns import OwnTurns, Turns

T = TypeVar("T")

OF_ALL = 4
"""Written at a time: each holds a page of files and what becomes of it."""

Key = tuple[str, int]
"""(table id, version)"""


class AskedCheckpoints(Generic[T]):
    """One at a time of each principal, and `OF_ALL` together. Of one event loop."""

    def __init__(self) -> None:
        self._asking = OwnTurns(1)
        self._of_all = Turns(OF_ALL)
        self._under_way: dict[Key, asyncio.Task[T]] = {}

    async def written(
        self,
        key: Key,
        write: Callable[[], Coroutine[Any, Any, T]],
        *,
        claim: AbstractAsyncContextManager[None] | None = None,
        principal: str,
        running: RunningCommits,
    ) -> T:
        """What `write` returns within the claim, or raises; that of another caller where the same
        is under way. Whoever is cancelled before its turn has begun nothing."""
        task = self._under_way.get(key)
        if task is None:
            await self._asking.take(principal)
            task = self._under_way.get(key)
            if task is None:
                task = self._begin(key, write, claim or nullcontext(), principal, running)
            else:
                self._asking.end(principal)
        return await asyncio.shield(task)

    def _begin(
        self,
        key: Key,
        write: Callable[[], Coroutine[Any, Any, T]],
        claim: AbstractAsyncContextManager[None],
        principal: str,
        running: RunningCommits,
    ) -> asyncio.Task[T]:
        async def in_turn() -> T:
            # Whoever waits for a claim has no place that others could use.
            async with claim, self._of_all.turn(principal):
                return await write()

        def over(task: asyncio.Task[T]) -> None:
            del self._under_way[key]
            self._asking.end(principal)
            if not task.cancelled():
                # Its callers may all have left: nobody else looks at it then.
                task.exception()

        section = running.run(("checkpoint", key[0]), in_turn())
        task = asyncio.create_task(section, name="asked-checkpoint")
        self._under_way[key] = task
        task.add_done_callback(over)
        return task
