"""A V2 checkpoint: its files are in sidecars, and sidecars that nothing has changed are named
again.

A sidecar holds the files between two keys, in the order of their paths. Paths begin with their
partition's folder, so a commit to one partition touches the few sidecars of that folder. The index
keeps which sidecars the last checkpoint had (`KnownCheckpoint`). The sidecars that commits have
touched since are written anew, and the others cost nothing. The sum of all sidecars' digests must
be the last checkpoint's sum and the difference that the commits since have made.
"""

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

import msgspec

from tidegate_protocol.checkpoint.columns import FileColumns
from tidegate_protocol.checkpoint.policy import CheckpointPolicy
from tidegate_protocol.log.actions import Action, UnknownAction
from tidegate_protocol.log.file_names import v2_checkpoint_name
from tidegate_service.core.checkpoints.same_log import SameLog
from tidegate_service.core.checkpoints.snapshot_rows import SnapshotRows
from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.core.observe.faults import CheckpointStep, FaultPoints, around
from tidegate_service.core.ports.checkpoints import (
    BEFORE_ALL,
    DIGEST_MODULUS,
    CheckpointFiles,
    CheckpointIndex,
    KnownCheckpoint,
    PathKey,
    Sidecar,
    SnapshotHead,
    WrittenFile,
)

logger = logging.getLogger("tidegate.upkeep")

SIDECARS = "_sidecars"
V2 = "v2"
FORM = 1
"""Of the rows in sidecars and parts; another one has all of them written anew."""
MOST_TIMES = 4
"""As many sidecars as there would be if all were written anew, at most, beside a few."""
A_FEW = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class V2Written:
    """`name` is of the main file; `files_written` and `bytes_written` include it."""

    name: str
    main: WrittenFile
    known: KnownCheckpoint
    num_actions: int
    files_written: int
    bytes_written: int


async def write_v2(
    index: CheckpointIndex,
    files: CheckpointFiles,
    table_id: str,
    head: SnapshotHead,
    columns: FileColumns,
    *,
    policy: CheckpointPolicy,
    actions: Sequence[Action],
    sidecar_files: int,
    form: Literal["json", "parquet"],
    faults: FaultPoints,
    same_log: SameLog,
    new_id: Callable[[], str],
) -> V2Written:
    """Write the sidecars that are not there yet, and then the main file that names all of them."""
    rows = SnapshotRows(index, table_id, head, policy)
    writing = _Sidecars(files, columns, rows, sidecar_files, new_id)
    shape = shape_of(columns)
    async with around(faults, CheckpointStep.PARTS_PUT):
        sidecars: list[Sidecar] | None = None
        known = await _reusable(
            index, files, table_id, head, same_log, shape=shape, sidecar_files=sidecar_files
        )
        if known is not None:
            sidecars = await _named_again(index, table_id, head, known, writing)
        if sidecars is None:
            sidecars = [one async for one in writing.write(BEFORE_ALL, None)]
    _check_complete(sidecars, rows, head)
    name = v2_checkpoint_name(head.version, new_id(), form)
    lines = [_checkpoint_metadata(head.version), *actions, *map(_sidecar, sidecars)]
    async with files.writing(name, columns) as file:
        await file.take_actions(lines)
        await same_log.check()
        await _check_there(files, sidecars)
        async with around(faults, CheckpointStep.CHECKPOINT_PUT):
            main = await file.put()
    await _check_there(files, sidecars)
    return V2Written(
        name=name,
        main=main,
        known=KnownCheckpoint(
            version=head.version, epoch=head.epoch, kind=V2, shape=shape, sidecars=sidecars
        ),
        num_actions=len(lines) + sum(one.num_adds + one.num_removes for one in sidecars),
        files_written=1 + writing.files_written,
        bytes_written=main.size + writing.bytes_written,
    )


async def _reusable(
    index: CheckpointIndex,
    files: CheckpointFiles,
    table_id: str,
    head: SnapshotHead,
    same_log: SameLog,
    *,
    shape: str,
    sidecar_files: int,
) -> KnownCheckpoint | None:
    """The last checkpoint, where its sidecars can be named again. It was made of the same index and
    with the same columns. Its sidecars and its main file are still there, and its sidecars have not
    become too many by being cut again and again."""
    known = await index.known_checkpoint(table_id)
    if known is None or not known.sidecars:
        return None
    if any(one.digest is None for one in known.sidecars):
        return None
    if (known.epoch, known.shape) != (head.epoch, shape) or known.version > head.version:
        return None
    usual = -(-head.num_files // sidecar_files)
    if len(known.sidecars) > MOST_TIMES * usual + A_FEW:
        return None
    # Nothing but that keeps a clean-up from the sidecars.
    if not await same_log.has_v2(known.version):
        return None
    return known if await _are_there(files, known.sidecars) else None


async def _are_there(files: CheckpointFiles, sidecars: Sequence[Sidecar]) -> bool:
    there = await files.sidecars({one.name for one in sidecars})
    return all(there.get(one.name) == one.size for one in sidecars)


async def _check_there(files: CheckpointFiles, sidecars: Sequence[Sidecar]) -> None:
    """Raise where a sidecar is gone: a clean-up takes sidecars that no checkpoint names."""
    if not await _are_there(files, sidecars):
        raise StorageUnavailable(
            "sidecars of the checkpoint were deleted while it was written; it can be written again"
        )


async def _named_again(
    index: CheckpointIndex,
    table_id: str,
    head: SnapshotHead,
    known: KnownCheckpoint,
    writing: "_Sidecars",
) -> list[Sidecar] | None:
    """All sidecars, those that changed written anew. None where all changed, where another
    checkpoint is known by now, and where the digests differ from the version's."""
    changes = await index.changed_sidecars(table_id, known, version=head.version)
    if changes is None or len(changes.after) == len(known.sidecars):
        return None
    sidecars = [one async for one in _renewed(writing, known.sidecars, changes.after)]
    differs_by = _digest(known.sidecars) + changes.digest - _digest(sidecars)
    if differs_by % DIGEST_MODULUS == 0:
        return sidecars
    logger.error(
        "sidecars differ from the version's files, and all are written anew",
        extra={"table_id": table_id, "checkpoint": known.version, "version": head.version},
    )
    return None


def _digest(sidecars: Sequence[Sidecar]) -> int:
    return sum(one.digest or 0 for one in sidecars)


async def _renewed(
    writing: "_Sidecars", sidecars: Sequence[Sidecar], changed: frozenset[PathKey]
) -> AsyncIterator[Sidecar]:
    ends: list[PathKey | None] = [one.after for one in sidecars[1:]]
    for one, end in zip(sidecars, [*ends, None], strict=True):
        if one.after not in changed:
            yield one
            continue
        async for renewed in writing.write(one.after, end):
            yield renewed


class _Sidecars:
    """Writes sidecars of about so many live files."""

    def __init__(
        self,
        files: CheckpointFiles,
        columns: FileColumns,
        rows: SnapshotRows,
        most: int,
        new_id: Callable[[], str],
    ) -> None:
        self._files = files
        self._columns = columns
        self._rows = rows
        self._most = most
        self._new_id = new_id
        self.files_written = 0
        self.bytes_written = 0

    async def write(self, after: PathKey, through: PathKey | None) -> AsyncIterator[Sidecar]:
        """The sidecars of all files behind one key, up to another: at least one, so that the keys
        between them have a sidecar to come to."""
        pages = self._rows.pages(after=after, through=through)
        page = await anext(pages, None)
        is_first = True
        while page is not None or is_first:
            is_first = False
            name = f"{self._new_id()}.parquet"
            begins, num_adds, num_removes, digest = after, 0, 0, 0
            async with self._files.writing(f"{SIDECARS}/{name}", self._columns) as file:
                while page is not None and num_adds < self._most:
                    await file.take(page)
                    num_adds += page.num_adds
                    num_removes += len(page.tombstones)
                    digest += page.digest
                    after = page.last
                    page = await anext(pages, None)
                written = await file.put()
            self.files_written += 1
            self.bytes_written += written.size
            yield Sidecar(
                after=begins,
                name=name,
                size=written.size,
                modified_ms=written.modified_ms,
                num_adds=num_adds,
                num_removes=num_removes,
                digest=digest % DIGEST_MODULUS,
            )


def _check_complete(sidecars: Sequence[Sidecar], rows: SnapshotRows, head: SnapshotHead) -> None:
    """Raise unless the sidecars, named again or written, have all live files of the version."""
    rows.num_adds = sum(one.num_adds for one in sidecars)
    rows.check_complete()


def shape_of(columns: FileColumns) -> str:
    """A name for all that the rows depend on beside the files."""
    return sha256(repr((FORM, columns)).encode()).hexdigest()


def _checkpoint_metadata(version: int) -> UnknownAction:
    return _line("checkpointMetadata", {"version": version})


def _sidecar(one: Sidecar) -> UnknownAction:
    return _line(
        "sidecar",
        {"path": one.name, "sizeInBytes": one.size, "modificationTime": one.modified_ms},
    )


def _line(kind: str, body: object) -> UnknownAction:
    return UnknownAction(kind=kind, raw=msgspec.json.encode({kind: body}))
