"""Commits of one table wait for each other before they take a connection.

The row's lock in Postgres is what keeps them apart, in this process and among all. But
whoever waits for it holds a connection, and without this the writers of one table that is
slow would hold all of them, and stop every other table. Those of many tables that are slow, as
where their store hangs, hold `at_once` of them at most, and those of one principal leave some of
these to others (`index.locking.places`).
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from uuid import UUID

from tidegate_service.core.errors import IndexUnavailable
from tidegate_service.core.observe.telemetry import SILENT, Phase, Telemetry
from tidegate_service.index.locking.places import Places


@dataclass(slots=True)
class _Queue:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    # Those who wait and the one whose turn it is; nobody: the queue is forgotten.
    present: int = 0


class TableQueues:
    """First come, first served at each table, and principals by turns at what there is for all. Of
    one event loop."""

    def __init__(self, *, timeout_s: float, at_once: int, telemetry: Telemetry = SILENT) -> None:
        self._timeout_s = timeout_s
        self._places = Places(at_once)
        self._telemetry = telemetry
        self._queues: dict[UUID, _Queue] = {}

    @property
    def waiting(self) -> int:
        """How many wait for their turn now, over all tables."""
        return sum(queue.present - 1 for queue in self._queues.values())

    @asynccontextmanager
    async def turn(self, table_id: UUID, who: str | None) -> AsyncIterator[None]:
        """In the name of `who` (`core.access.roles.share_of`). Raises `IndexUnavailable` where the
        turn does not come in time."""
        queue = self._queues.setdefault(table_id, _Queue())
        queue.present += 1
        try:
            with self._telemetry.phase(Phase.QUEUE):
                await self._wait(queue, who)
            try:
                yield
            finally:
                self._places.give_back(who)
                queue.lock.release()
        finally:
            queue.present -= 1
            if not queue.present:
                del self._queues[table_id]

    @asynccontextmanager
    async def place(self, who: str | None) -> AsyncIterator[None]:
        """One of those that there are for all tables, for a section of one that nobody else has
        yet. Raises `IndexUnavailable` where none comes free in time."""
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._places.take(who)
        except TimeoutError:
            raise IndexUnavailable(
                f"what many tables wait for took more than {self._timeout_s} s"
            ) from None
        try:
            yield
        finally:
            self._places.give_back(who)

    async def _wait(self, queue: _Queue, who: str | None) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                await queue.lock.acquire()
                try:
                    await self._places.take(who)
                except BaseException:
                    queue.lock.release()
                    raise
        except TimeoutError:
            raise IndexUnavailable(
                f"earlier commits to this table, or what many tables wait for, took more than "
                f"{self._timeout_s} s"
            ) from None
