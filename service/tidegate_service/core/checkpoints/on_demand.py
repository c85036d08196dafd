"""Upkeep that a caller asks for, of one table."""

from tidegate_service.core.checkpoints.checkpoint import CheckpointWritten, write_checkpoint
from tidegate_service.core.context import Context
from tidegate_service.core.ports.records import TableHead
from tidegate_service.core.tables.lookup import get_head


async def checkpoint_table(
    context: Context, ref: str, version: int | None
) -> tuple[TableHead, CheckpointWritten]:
    """The table, and the checkpoint that was written of it. The writing goes on where the caller
    leaves, and is done once for all who ask for the same. Raises as `write_checkpoint` does."""
    table = await get_head(context, ref)
    if table.published_version < table.latest_version:
        context.wake_publisher(table.id)
    written = await context.checkpoints.written(
        (table.id, table.latest_version if version is None else version),
        lambda: write_checkpoint(
            context.index,
            context.storage,
            table,
            version,
            who=context.who,
            faults=context.faults,
        ),
        principal=context.caller.principal.name,
        running=context.running,
    )
    return table, written
