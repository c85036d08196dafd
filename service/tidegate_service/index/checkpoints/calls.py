"""The index's calls about checkpoints, each with its connection."""

from collections.abc import AsyncIterator, Sequence
from uuid import UUID

from tidegate_protocol.base.problems import Code
from tidegate_protocol.base.text import excerpt
from tidegate_service.core.errors import NotFound
from tidegate_service.core.ports.checkpoints import (
    BEFORE_ALL,
    ChangedSidecars,
    FileRows,
    KnownCheckpoint,
    PathKey,
    SnapshotHead,
)
from tidegate_service.index.checkpoints import appended, snapshots, unchanged_actions, written
from tidegate_service.index.limits import IndexLimits
from tidegate_service.index.postgres.connections import Connections
from tidegate_service.index.reading.reads import table_id_of


class CheckpointCalls:
    """Implements `core.ports.checkpoints.CheckpointIndex`."""

    _connections: Connections
    _limits: IndexLimits

    async def snapshot_head(self, table_id: str, version: int | None) -> SnapshotHead:
        identity = _identity(table_id)
        return await self._connections.read(
            lambda c: snapshots.snapshot_head(c, identity, version, self._limits)
        )

    async def is_published(self, table_id: str, head: SnapshotHead) -> bool:
        identity = _identity(table_id)
        return await self._connections.read(lambda c: snapshots.is_published(c, identity, head))

    def file_rows(
        self,
        table_id: str,
        head: SnapshotHead,
        *,
        removed_after_ms: int,
        after: PathKey = BEFORE_ALL,
        through: PathKey | None = None,
    ) -> AsyncIterator[FileRows]:
        return snapshots.file_rows(
            self._connections,
            _identity(table_id),
            head,
            removed_after_ms=removed_after_ms,
            after=after,
            through=through,
            limits=self._limits,
        )

    def unchanged_since(self, table_id: str, version: int) -> AsyncIterator[Sequence[bytes]]:
        return unchanged_actions.unchanged_since(self._connections, _identity(table_id), version)

    async def known_checkpoint(self, table_id: str) -> KnownCheckpoint | None:
        identity = _identity(table_id)
        return await self._connections.read(lambda c: written.known_checkpoint(c, identity))

    async def changed_sidecars(
        self, table_id: str, known: KnownCheckpoint, *, version: int
    ) -> ChangedSidecars | None:
        identity = _identity(table_id)
        return await self._connections.read(
            lambda c: written.changed_sidecars(c, identity, known, version=version)
        )

    async def appended(
        self, table_id: str, head: SnapshotHead, *, after: int, beside_removed: bool
    ) -> FileRows | None:
        return await appended.appended(
            self._connections,
            _identity(table_id),
            head,
            after=after,
            beside_removed=beside_removed,
        )

    async def keep_checkpoint(self, table_id: str, checkpoint: KnownCheckpoint) -> None:
        identity = _identity(table_id)
        await self._connections.write(lambda c: written.keep_checkpoint(c, identity, checkpoint))


def _identity(table_id: str) -> UUID:
    identity = table_id_of(table_id)
    if identity is None:
        raise NotFound(f"there is no table {excerpt(table_id)}", code=Code.TABLE_NOT_FOUND)
    return identity
