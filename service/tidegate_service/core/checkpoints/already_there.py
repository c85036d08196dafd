"""A version whose checkpoint the log has already, from an earlier request, from an attempt that was
cut off before it was pointed to, or by another writer. Another one with more or fewer parts is not
put beside it: readers of Delta Kernel take either of the two, and refuse the table where
`_last_checkpoint` says another number of parts."""

from tidegate_protocol.checkpoint.last_checkpoint import LastCheckpoint
from tidegate_protocol.log.file_names import MultiPartCheckpoint, parse
from tidegate_service.core.checkpoints.same_log import SameLog
from tidegate_service.core.checkpoints.snapshot_rows import SnapshotRows
from tidegate_service.core.ports.checkpoints import (
    CheckpointKind,
    KnownCheckpoint,
    SnapshotHead,
)


async def already_there(
    same_log: SameLog,
    head: SnapshotHead,
    rows: SnapshotRows,
    known: KnownCheckpoint | None,
    small_actions: int,
) -> tuple[LastCheckpoint, KnownCheckpoint] | None:
    """What to point to and to keep of the version's checkpoint in the log; None where the log has
    none but V2 ones. `rows` are the snapshot's, and are read; `known` is what was kept last.
    Raises as `SameLog.check_checkpoint` where the checkpoint is not the index's snapshot."""
    there, size = await same_log.checkpoint(head.version, but_v2=True)
    if there is None:
        return None
    await same_log.check_checkpoint(there)
    async for _ in rows.pages():
        pass
    rows.check_complete()
    has_parts = isinstance(parse(there.files[0]), MultiPartCheckpoint)
    last = LastCheckpoint(
        version=head.version,
        num_actions=rows.count + small_actions,
        num_adds=rows.num_adds,
        size=size,
        parts=len(there.files) if has_parts else None,
    )
    if known is None or (known.version, known.epoch) != (head.version, head.epoch):
        kind = CheckpointKind.MULTI_PART if has_parts else CheckpointKind.CLASSIC
        known = KnownCheckpoint(version=head.version, epoch=head.epoch, kind=kind.value, shape="")
    return last, known
