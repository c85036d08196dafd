"""The publisher: keeps the logs of catalog-managed tables up with their index.

Every table that lags behind has a task of its own, so none waits for another but for one of the
slots of its store. Now and then the index is asked which tables lag, so nothing is lost when a
process dies or a wake-up is missed; wake-ups only shorten the wait.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable

from tidegate_service.core.errors import ServiceError
from tidegate_service.core.faults import NO_FAULTS, FaultPoints
from tidegate_service.core.ports import Index, Storage
from tidegate_service.core.publish import publish_table
from tidegate_service.core.records import TableRecord, TableState
from tidegate_service.core.telemetry import SILENT, Telemetry

logger = logging.getLogger("tidegate.publisher")

TABLES_AT_ONCE = 1000
"""What one look finds; in random order, so that every table has its turn."""
SLOTS = 8
"""Tables of one store that are published at a time."""
LOOKS = 4
"""Rows of tables that are read at a time."""
RESTART_S = 1.0
RESTS = 4
FAR_BEHIND = 10_000
"""A table that is being committed to rests so many times as long as it was published for, unless so
many versions wait: commits are seen by whoever asks the service, published or not."""
PAUSE_S = 0.1
"""Between two batches of a table that is being committed to, at least: each costs the same three
short transactions, of however many versions it is."""


class Publisher:
    """Publishes until it is cancelled. `interval_s` bounds the wait between two looks.

    `store_of` says of a location which store it is in; no store takes another one's slots.
    """

    def __init__(
        self,
        index: Index,
        storage: Storage,
        *,
        interval_s: float = 1.0,
        store_of: Callable[[str], str] = lambda location: "the only one",
        faults: FaultPoints = NO_FAULTS,
        telemetry: Telemetry = SILENT,
    ) -> None:
        self._index = index
        self._storage = storage
        self._interval_s = interval_s
        self._store_of = store_of
        self._faults = faults
        self._telemetry = telemetry
        self._slots: defaultdict[str, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(SLOTS)
        )
        self._looks = asyncio.Semaphore(LOOKS)
        self._running = False
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._woken: set[str] = set()
        self._behind: dict[str, int] = {}

    def wake(self, table_id: str) -> None:
        """Have the table looked at soon: it has something to publish."""
        if table_id in self._tasks:
            self._woken.add(table_id)
        elif self._running:
            self._start(table_id, None)

    async def run_on(self) -> None:
        """`run`, begun again after a defect: that must not end publishing for good. What it met is
        met again, and logged."""
        while True:
            try:
                await self.run()
            except Exception:
                logger.exception("the publisher met a defect and is started again")
                await asyncio.sleep(RESTART_S)

    async def run(self) -> None:
        """Look after look; a failure of one table or look is logged and tried again."""
        self._running = True
        try:
            while True:
                try:
                    for table in await self._index.unpublished(limit=TABLES_AT_ONCE):
                        if table.id not in self._tasks:
                            self._start(table.id, table)
                except ServiceError as error:
                    logger.warning("looking for versions failed", extra={"reason": error.detail})
                await asyncio.sleep(self._interval_s)
        finally:
            self._running = False
            tasks = list(self._tasks.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            # One that was cancelled before its first step has not removed itself.
            self._tasks.clear()

    async def round(self) -> int:
        """Publish what every lagging table has waiting; returns the number of versions."""
        tables = await self._index.unpublished(limit=TABLES_AT_ONCE)
        counts = await asyncio.gather(*(self._publish(table) for table in tables))
        return sum(count or 0 for count in counts)

    def _start(self, table_id: str, table: TableRecord | None) -> None:
        self._tasks[table_id] = asyncio.create_task(
            self._kept_up(table_id, table), name="publishing"
        )

    async def _kept_up(self, table_id: str, table: TableRecord | None) -> None:
        try:
            await self._keep_up(table_id, table)
        except Exception:
            # A defect that one table brings out must not end the publishing of the others.
            logger.exception("publishing met a defect", extra={"table_id": table_id})
            await asyncio.sleep(self._interval_s)
        finally:
            self._tasks.pop(table_id, None)
            self._behind.pop(table_id, None)

    async def _keep_up(self, table_id: str, table: TableRecord | None) -> None:
        """Publish until the table's wake-ups end."""
        now = asyncio.get_running_loop().time
        while True:
            began = now()
            self._woken.discard(table_id)
            count = await self._publish(table or table_id, batches=1)
            table = None
            if count is None:
                # However many commits there are to wake it up: what is broken is left alone.
                await asyncio.sleep(self._interval_s)
                return
            behind = self._behind.get(table_id, 0)
            if table_id in self._woken:
                # As long as commits come, they have most of the time, and half of it at least.
                rest = RESTS if behind < FAR_BEHIND else 1
                await asyncio.sleep(max(PAUSE_S, rest * (now() - began)))
            elif behind <= 0 or not count:
                return

    async def _publish(self, table: TableRecord | str, *, batches: int | None = None) -> int | None:
        """How many versions became published here; None where that failed. At most so many
        batches, or all that wait."""
        name = table if isinstance(table, str) else table.name
        try:
            if isinstance(table, str):
                async with self._looks:
                    found = await self._index.table(table)
                if found is None or not _lags(found):
                    return 0
                table = found
                name = table.name
            async with self._slots[self._store_of(table.location)]:
                count = await publish_table(
                    self._index, self._storage, table, batches=batches, faults=self._faults
                )
        except ServiceError as error:
            logger.warning(
                "publishing failed",
                extra={"table": name, "code": str(error.code), "reason": error.detail},
            )
            return None
        self._telemetry.published(count)
        self._behind[table.id] = table.latest_version - table.published_version - count
        return count


def _lags(table: TableRecord) -> bool:
    return (
        table.catalog_managed
        and table.state is TableState.ACTIVE
        and table.published_version < table.latest_version
    )
