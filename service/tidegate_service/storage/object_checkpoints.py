"""The `CheckpointFiles` port over roots."""

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TypeVarTuple, Unpack

import pyarrow as pa

from tidegate_protocol.base.problems import Code
from tidegate_protocol.base.text import excerpt
from tidegate_protocol.checkpoint.columns import FileColumns
from tidegate_protocol.checkpoint.last_checkpoint import version_of
from tidegate_protocol.log.actions import Action
from tidegate_protocol.log.file_names import (
    LAST_CHECKPOINT,
    MultiPartCheckpoint,
    commit_name,
    parse,
)
from tidegate_protocol.log.segment import MAX_HEAD, Listing
from tidegate_service.core.errors import Refused, StorageUnavailable
from tidegate_service.core.ports.checkpoints import FileRows, WrittenFile
from tidegate_service.core.sharing.pools import Share
from tidegate_service.storage.checkpoints.writing import Rows, rows_of
from tidegate_service.storage.roots import Root, Staged

Ts = TypeVarTuple("Ts")

SIDECARS = "_sidecars"
_MOST_POINTER_BYTES = 1024 * 1024
"""Others may have written a schema into it."""


class ObjectCheckpoints:
    """The checkpoints of one table; implements `core.ports.checkpoints.CheckpointFiles`."""

    def __init__(self, root: Root, table: str, *, who: str | None = None) -> None:
        self._root = root
        self._folder = f"{table}/_delta_log"
        self._share = root.checkpoints.of(who or "")
        self._listing = root.reading.of(who or "")

    @asynccontextmanager
    async def writing(
        self, name: str, columns: FileColumns
    ) -> AsyncIterator["ObjectCheckpointFile"]:
        path = f"{self._folder}/{name}"
        staged = await self._share.run(self._root.stage, path)
        try:
            rows = await self._share.run(rows_of, name, staged.file, columns)
            try:
                yield ObjectCheckpointFile(staged, rows, self._share)
            finally:
                await self._share.run(rows.leave)
        finally:
            # Behind whatever a thread still does with the file.
            await self._share.run(staged.leave)

    async def sidecars(self, names: Collection[str]) -> Mapping[str, int]:
        found: dict[str, int] = {}
        if not names:
            return found
        folder, behind = f"{self._folder}/{SIDECARS}", min(names)[:-1]
        async for batch in self._root.entries(folder, self._listing, after=behind):
            found.update((entry.name, entry.size) for entry in batch if entry.name in names)
            if batch and batch[-1].name >= max(names):
                break
        return found

    async def parts(self, version: int) -> frozenset[int]:
        found: set[int] = set()
        behind = f"{version:020d}."
        async for batch in self._root.entries(self._folder, self._listing, after=behind):
            for entry in batch:
                file = parse(entry.name)
                if isinstance(file, MultiPartCheckpoint) and file.version == version:
                    found.add(file.parts)
            # Names are in order, and those of this version come before its commit.
            if batch and batch[-1].name >= commit_name(version):
                break
        return frozenset(found)

    @property
    def can_take_over(self) -> bool:
        return self._root.has_links

    async def take_over(self, names: Sequence[tuple[str, str]]) -> Sequence[WrittenFile] | None:
        return await self._share.run(self._root.link, self._folder, names)

    async def point_to(self, version: int, content: bytes) -> bool:
        path = f"{self._folder}/{LAST_CHECKPOINT}"
        found = await self._share.run(self._pointed, path)
        if found is not None and found > version and await self._has_checkpoint(found):
            return False
        await self._share.run(self._root.replace, path, [content])
        return True

    def _pointed(self, path: str) -> int | None:
        """The version that the pointer names; None without one."""
        there = self._root.open(path)
        if there is None:
            return None
        with there:
            return version_of(there.read(_MOST_POINTER_BYTES))

    async def _has_checkpoint(self, version: int) -> bool:
        """Whether a whole checkpoint of the version is there."""
        if version > MAX_HEAD:
            return False
        found = Listing()
        behind = f"{version:020d}."
        async for batch in self._root.entries(self._folder, self._listing, after=behind):
            found.take((entry.name, entry.size) for entry in batch)
            if batch and batch[-1].name >= commit_name(version):
                break
        return version in found.checkpoints()


class ObjectCheckpointFile:
    """Implements `core.ports.checkpoints.CheckpointFile`."""

    def __init__(self, staged: Staged, rows: Rows, share: Share) -> None:
        self._staged = staged
        self._rows = rows
        self._share = share

    async def take(self, rows: FileRows) -> None:
        await self._share.run(_translated, self._rows.take, rows)

    async def take_actions(self, actions: Sequence[Action]) -> None:
        await self._share.run(_translated, self._rows.take_actions, actions)

    async def put(self) -> WrittenFile:
        return await self._share.run(self._put)

    def _put(self) -> WrittenFile:
        _translated(self._rows.end)
        return self._staged.put()


def _translated(work: Callable[[Unpack[Ts]], None], *args: *Ts) -> None:
    try:
        work(*args)
    except pa.ArrowInvalid as error:
        raise Refused(
            "an action of the table has a value that a checkpoint's columns cannot hold: "
            f"{excerpt(str(error))}",
            code=Code.INVALID_ACTION,
        ) from error
    except OSError as error:
        raise StorageUnavailable(
            f"a checkpoint could not be written: {error.strerror or 'the disk failed'}"
        ) from error
