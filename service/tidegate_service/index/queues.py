"""Commits of one table wait for each other before they take a connection.

The row's lock in Postgres is what keeps them apart, in this process and among all. But
whoever waits for it holds a connection, and without this the writers of one table that is
slow would hold all of them, and stop every other table.
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

    def __init__(self, *, timeout_s: float, telemetry: Telemetry = SILENT) -> None:
        self._timeout_s = timeout_s
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
                queue.lock.release()
        finally:
            queue.present -= 1
            if not queue.present:
                del self._queues[table_id]

    async def _wait(self, queue: _Queue) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                await queue.lock.acquire()
        except TimeoutError:
            raise IndexUnavailable(
                f"earlier commits to this table took more than {self._timeout_s} s"
            ) from None
