"""A catalog-managed table whose log has lost the checkpoint that it begins with.

Versions before the index's first one have left the index, so they cannot be put back
(`core.catalog_managed.whole_log`). The index still has the snapshot. With a checkpoint of it, the
log can be read again.
"""

from tidegate_protocol.log.segment import BrokenLog, versions_left
from tidegate_service.core.catalog_managed.whole_log import without_base
from tidegate_service.core.checkpoints.checkpoint import write_checkpoint
from tidegate_service.core.context import Context
from tidegate_service.core.log.files.listing import listed
from tidegate_service.core.ports.records import TableHead, TableState
from tidegate_service.core.sharing import offload


async def restore_checkpoint(context: Context, table: TableHead) -> None:
    """Write a checkpoint of the last published version where the log of a catalog-managed table
    cannot be read without one. For a quarantined table nothing is written, since its index may be
    what is wrong. Raises as `write_checkpoint` does."""
    is_cut = 0 < table.first_version <= table.published_version
    if not is_cut or table.state is not TableState.ACTIVE:
        return
    try:
        files = await listed(context.storage.log(table.location, who=context.who))
    except BrokenLog:
        # Whoever reads the log next says so.
        return
    commits, base = await offload.run(len(files), versions_left, files)
    if without_base(table, commits, base) is None:
        return
    version = table.published_version
    await context.checkpoints.written(
        (table.id, version),
        lambda: write_checkpoint(
            context.index, context.storage, table, version, who=context.who, faults=context.faults
        ),
        principal=context.caller.principal.name,
        running=context.running,
    )
