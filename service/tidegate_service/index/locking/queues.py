"""Sections of one table wait for each other before they take a connection.

The row's lock in Postgres keeps them apart, in this process and among all processes. But waiting
for that lock takes a connection: without these queues, the writers of one slow table would take all
connections, and stop every other table. The sections of all tables together, as where a store
hangs, use at most `at_once` connections, and one principal's only a part of these
(`index.locking.places`).
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
    # How many wait or have their turn. At 0 the queue is dropped.
    present: int = 0


class TableQueues:
    """First come, first served at each table; principals take turns at the places for all tables.
    Of one event loop."""

    def __init__(self, *, timeout_s: float, at_once: int, telemetry: Telemetry = SILENT) -> None:
        self._timeout_s = timeout_s
        self._places = Places(at_once)
        self._telemetry = telemetry
        self._queues: dict[UUID, _Queue] = {}

    @property
    def waiting(self) -> int:
        """How many sections wait for their turn now, over all tables."""
        return sum(queue.present - 1 for queue in self._queues.values())

    @asynccontextmanager
    async def turn(self, table_id: UUID, who: str | None) -> AsyncIterator[None]:
        """The table's turn and a place, for `who` (`core.access.roles.share_of`). Raises
        `IndexUnavailable` where they do not come in time."""
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
        """A place without a turn, for a section of a table that nobody else knows yet. Raises
        `IndexUnavailable` where none comes free in time."""
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
