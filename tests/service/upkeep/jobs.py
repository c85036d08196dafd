"""Jobs that are easily looked at."""

import asyncio
from collections.abc import Callable

from tidegate_service.core.observe.telemetry import UpkeepKind
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.ports.upkeep.upkeep import Done, UpkeepRecord


class Counting:
    """Notes who was cared for; due again a version later. `meets` may raise, or take its time."""

    def __init__(
        self,
        kind: UpkeepKind = UpkeepKind.CHECKSUM,
        meets: Callable[[TableRecord], None] = lambda table: None,
        *,
        every: int = 1,
        takes_s: float = 0.0,
        trouble: str | None = None,
    ) -> None:
        self.kind = kind
        self.runs: list[tuple[str, int]] = []
        self.records: list[UpkeepRecord] = []
        self._meets = meets
        self._every = every
        self._takes_s = takes_s
        self.trouble = trouble

    async def run(self, table: TableRecord, record: UpkeepRecord) -> Done:
        self.runs.append((table.id, table.published_version))
        self.records.append(record)
        self._meets(table)
        await asyncio.sleep(self._takes_s)
        return Done(
            version=table.published_version,
            due_version=table.published_version + self._every,
            trouble=self.trouble,
        )
