"""Sidecars of V2 checkpoints that no checkpoint names any more."""

from collections.abc import Callable

from tidegate_protocol.log.actions import Protocol, UnknownAction
from tidegate_protocol.log.file_names import CheckpointFile, V2Checkpoint, parse
from tidegate_service.core.log.checkpoint_stream import sidecar_name
from tidegate_service.core.ports.records import TableHead
from tidegate_service.core.ports.store.expired import ExpiredLog
from tidegate_service.core.ports.store.storage import Log, UnreadableFile

FEATURE = "v2Checkpoint"
REMOVED_AT_ONCE = 100
CHECKPOINTS = 2_000
"""Checkpoints that are read to see what they name. Where a log has more, its sidecars are left. One
with a classic name may be a V2 checkpoint, too; one of several parts is not."""

NAMES = 100_000
"""Of sidecars: so many are looked at in a run. Where checkpoints name more, all are left."""
STEP_S = 5.0
"""So long a run lists sidecars, reads checkpoints, and deletes: other upkeep waits for it."""


async def remove_unreferenced(
    log: Log,
    expired: ExpiredLog,
    table: TableHead,
    protocol: Protocol,
    *,
    before_ms: int,
    monotonic_s: Callable[[], float],
) -> None:
    """Delete sidecars that were written before a moment and that no checkpoint in the log names,
    whether it is whole or not. Where one of these cannot be read, or all cannot be in `STEP_S`,
    nothing is deleted.

    A checkpoint that is being written names sidecars that are new, or that the newest one names.
    Raises `DeletionRefused` and `StorageUnavailable`.
    """
    if FEATURE not in (protocol.writer_features or ()):
        return
    old: list[str] = []
    until_s = monotonic_s() + STEP_S
    async for entries in expired.sidecars():
        old += [entry.name for entry in entries if entry.modified_ms < before_ms]
        if len(old) >= NAMES or monotonic_s() > until_s:
            break
    named = await _named(log, table, monotonic_s) if old else None
    if named is None:
        return
    unnamed = [name for name in old if name not in named and name.endswith(".parquet")]
    until_s = monotonic_s() + STEP_S
    for first in range(0, len(unnamed), REMOVED_AT_ONCE):
        if monotonic_s() > until_s:
            return
        await expired.remove_sidecars(unnamed[first : first + REMOVED_AT_ONCE])


async def _named(log: Log, table: TableHead, monotonic_s: Callable[[], float]) -> set[str] | None:
    """What the log's checkpoints name; None where that cannot be said."""
    named: set[str] = set()
    checkpoints: list[str] = []
    until_s = monotonic_s() + STEP_S
    try:
        async for entries in log.entries():
            checkpoints += [
                entry.name
                for entry in entries
                if isinstance(parse(entry.name), V2Checkpoint | CheckpointFile)
            ]
            if len(checkpoints) > CHECKPOINTS:
                return None
        for name in checkpoints:
            async for batch in log.checkpoint_actions(name):
                named |= {
                    sidecar_name(action, table.location)
                    for action in batch
                    if isinstance(action, UnknownAction) and action.kind == "sidecar"
                }
                if len(named) > NAMES or monotonic_s() > until_s:
                    return None
    except UnreadableFile:
        return None
    return named
