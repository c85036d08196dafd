"""When a table's next checkpoint is due: `delta.checkpointInterval` versions after the last one.

Where commits come faster than checkpoints can be written within the share of the instance's time
that upkeep has, it is as often as that allows.
"""

from collections.abc import Awaitable, Callable

from tidegate_protocol.features.upkeep import checkpoint_interval
from tidegate_service.core.observe.telemetry import UpkeepKind
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.ports.upkeep.upkeep import Done, UpkeepRecord


class Checkpoints:
    """Implements `core.upkeep.job.Job`. `write` writes a checkpoint of the table's last published
    version, or of a later one, and returns its version."""

    kind = UpkeepKind.CHECKPOINT

    def __init__(self, write: Callable[[TableRecord], Awaitable[int]]) -> None:
        self._write = write

    async def run(self, table: TableRecord, record: UpkeepRecord) -> Done:
        assert table.metadata is not None, "only a table that is being created has none"
        interval = checkpoint_interval(table.metadata.configuration)
        version = record.version
        if table.published_version >= max(version, 0) + interval:
            version = await self._write(table)
        return Done(version=version, due_version=max(version, 0) + interval)
