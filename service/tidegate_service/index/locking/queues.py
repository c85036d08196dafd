"""Commits of one table wait for each other before they take a connection.

The row's lock in Postgres is what keeps them apart, in this process and among all. But
whoever waits for it holds a connection, and without this the writers of one table that is
slow would hold all of them, and stop every other table. Those of many tables that are slow, as
where their store hangs, hold `at_once` of them at most.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from uuid import UUID

from tidegate_service.core.errors import IndexUnavailable
from tidegate_service.core.telemetry import SILENT, Phase, Telemetry


@dataclass(slots=True)
class _Queue:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    # Those who wait and the one whose turn it is; nobody: the queue is forgotten.
    present: int = 0


class TableQueues:
    """First come, first served, each table for itself. Of one event loop."""

    def __init__(self, *, timeout_s: float, at_once: int, telemetry: Telemetry = SILENT) -> None:
        self._timeout_s = timeout_s
        self._turns = asyncio.Semaphore(at_once)
        self._telemetry = telemetry
        self._queues: dict[UUID, _Queue] = {}

    @property
    def waiting(self) -> int:
        """How many wait for their turn now, over all tables."""
        return sum(queue.present - 1 for queue in self._queues.values())

    @asynccontextmanager
    async def turn(self, table_id: UUID) -> AsyncIterator[None]:
        """Raises `IndexUnavailable` where the turn does not come in time."""
        queue = self._queues.setdefault(table_id, _Queue())
        queue.present += 1
        try:
            with self._telemetry.phase(Phase.QUEUE):
                await self._wait(queue)
            try:
                yield
            finally:
                self._turns.release()
                queue.lock.release()
        finally:
            queue.present -= 1
            if not queue.present:
                del self._queues[table_id]

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """One of those that there are for all tables, for a section of one that nobody else has
        yet. Raises `IndexUnavailable` where none comes free in time."""
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._turns.acquire()
        except TimeoutError:
            raise IndexUnavailable(
                f"what many tables wait for took more than {self._timeout_s} s"
            ) from None
        try:
            yield
        finally:
            self._turns.release()

    async def _wait(self, queue: _Queue) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                await queue.lock.acquire()
                try:
                    await self._turns.acquire()
                except BaseException:
                    queue.lock.release()
                    raise
        except TimeoutError:
            raise IndexUnavailable(
                f"earlier commits to this table, or what many tables wait for, took more than "
                f"{self._timeout_s} s"
            ) from None
