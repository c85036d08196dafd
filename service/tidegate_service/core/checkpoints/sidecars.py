"""Sidecars of V2 checkpoints that no checkpoint names any more."""

from collections.abc import Callable

from tidegate_protocol.log.actions import Protocol, UnknownAction
from tidegate_protocol.log.file_names import CheckpointFile, V2Checkpoint, parse
from tidegate_service.core.limits import UpkeepLimits
from tidegate_service.core.log.files.checkpoint_stream import sidecar_name
from tidegate_service.core.ports.records import TableHead
from tidegate_service.core.ports.store.expired import ExpiredLog
from tidegate_service.core.ports.store.storage import Log, UnreadableFile

FEATURE = "v2Checkpoint"


async def remove_unreferenced(
    log: Log,
    expired: ExpiredLog,
    table: TableHead,
    protocol: Protocol,
    *,
    before_ms: int,
    limits: UpkeepLimits,
    monotonic_s: Callable[[], float],
) -> None:
    """Delete sidecars that were written before `before_ms` and that no checkpoint in the log names,
    whether the checkpoint is whole or not. Nothing is deleted where a checkpoint cannot be read, or
    where reading all takes longer than `limits.sidecars_s`.

    A checkpoint that is being written names sidecars that are new, or that the newest one names.
    Raises `DeletionRefused` and `StorageUnavailable`.
    """
    if FEATURE not in (protocol.writer_features or ()):
        return
    old: list[str] = []
    until_s = monotonic_s() + limits.sidecars_s
    async for entries in expired.sidecars():
        old += [entry.name for entry in entries if entry.modified_ms < before_ms]
        if len(old) >= limits.sidecars or monotonic_s() > until_s:
            break
    named = await _named(log, table, limits, monotonic_s) if old else None
    if named is None:
        return
    unnamed = [name for name in old if name not in named]
    until_s = monotonic_s() + limits.sidecars_s
    for first in range(0, len(unnamed), limits.removed):
        if monotonic_s() > until_s:
            return
        await expired.remove_sidecars(unnamed[first : first + limits.removed])


async def _named(
    log: Log, table: TableHead, limits: UpkeepLimits, monotonic_s: Callable[[], float]
) -> set[str] | None:
    """The sidecars that the log's checkpoints name; None where that cannot be said. A checkpoint
    with a classic name may be a V2 checkpoint, too; a checkpoint of several parts is none."""
    named: set[str] = set()
    checkpoints: list[str] = []
    until_s = monotonic_s() + limits.sidecars_s
    try:
        async for entries in log.entries():
            checkpoints += [
                entry.name
                for entry in entries
                if isinstance(parse(entry.name), V2Checkpoint | CheckpointFile)
            ]
            if len(checkpoints) > limits.sidecar_checkpoints:
                return None
        for name in checkpoints:
            async for batch in log.checkpoint_actions(name):
                named |= {
                    sidecar_name(action, table.location)
                    for action in batch
                    if isinstance(action, UnknownAction) and action.kind == "sidecar"
                }
                if len(named) > limits.sidecars or monotonic_s() > until_s:
                    return None
    except UnreadableFile:
        return None
    return named
