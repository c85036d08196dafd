"""The publisher: keeps the logs of catalog-managed tables up with their index.

Each round asks the index which tables lag behind, so nothing is lost when a process dies or a
wake-up is missed; wake-ups only shorten the wait.
"""

import asyncio
import logging
from collections.abc import Sequence

from tidegate_service.core.errors import ServiceError
from tidegate_service.core.faults import NO_FAULTS, FaultPoints
from tidegate_service.core.ports import Index, Storage
from tidegate_service.core.publish import publish_table
from tidegate_service.core.records import TableRecord
from tidegate_service.core.telemetry import SILENT, Telemetry

logger = logging.getLogger("tidegate.publisher")

TABLES_A_ROUND = 100
CONCURRENCY = 8


class Publisher:
    """Publishes until it is cancelled. `interval_s` bounds the wait between two rounds."""

    def __init__(
        self,
        index: Index,
        storage: Storage,
        *,
        interval_s: float = 1.0,
        faults: FaultPoints = NO_FAULTS,
        telemetry: Telemetry = SILENT,
    ) -> None:
        self._index = index
        self._storage = storage
        self._interval_s = interval_s
        self._faults = faults
        self._telemetry = telemetry
        self._wake = asyncio.Event()

    def wake(self, table_id: str) -> None:
        """Have the next round start at once; `table_id` has something to publish."""
        del table_id  # The index knows which tables lag, this one included.
        self._wake.set()

    async def run(self) -> None:
        """Round after round; a failure of one table or round is logged and tried again."""
        while True:
            self._wake.clear()
            published = 0
            try:
                published = await self.round()
            except ServiceError as error:
                logger.warning("publishing round failed", extra={"reason": error.detail})
            if published:
                continue
            try:
                async with asyncio.timeout(self._interval_s):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def round(self) -> int:
        """Publish what every lagging table has waiting; returns the number of versions."""
        tables = await self._index.unpublished(limit=TABLES_A_ROUND)
        return await self._publish(tables)

    async def _publish(self, tables: Sequence[TableRecord]) -> int:
        slots = asyncio.Semaphore(CONCURRENCY)

        async def one(table: TableRecord) -> int:
            async with slots:
                try:
                    count = await publish_table(
                        self._index, self._storage, table, faults=self._faults
                    )
                    self._telemetry.published(count)
                    return count
                except ServiceError as error:
                    logger.warning(
                        "publishing failed",
                        extra={
                            "table": table.name,
                            "code": str(error.code),
                            "reason": error.detail,
                        },
                    )
                    return 0

        return sum(await asyncio.gather(*(one(table) for table in tables)))
