"""The hook that keeps the symlink manifests of tables up, where their property asks for it.

Unlike others it is not called for each version: manifests are of one, so a run goes from the cursor
to the newest published version at once, and makes those of the partitions that were touched
between. It makes all where there is no cursor, where protocol or metadata changed since, where too
many partitions were touched to be held, where the index does not hold all versions since, and where
the table has no manifests at all.
"""

import logging
from collections.abc import Sequence

from tidegate_protocol.base.problems import Code
from tidegate_protocol.features.upkeep import writes_manifests
from tidegate_protocol.log.actions import Metadata
from tidegate_service.core.errors import NotFound, Refused, ServiceError
from tidegate_service.core.hooks.runs import HookFailed
from tidegate_service.core.limits import MANIFEST_LIMITS, ManifestLimits
from tidegate_service.core.manifests.in_order import KIND, NAME, set_back
from tidegate_service.core.manifests.making import make_manifests
from tidegate_service.core.observe.faults import NO_FAULTS, FaultPoints
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.ports.store.storage import Storage
from tidegate_service.core.ports.upkeep.upkeep import (
    AT_NEW_METADATA,
    Done,
    UpkeepIndex,
    UpkeepRecord,
)

logger = logging.getLogger("tidegate.hooks")


class SymlinkManifests:
    """Implements `core.upkeep.job.Job`. A record's version is the cursor: the version that the
    manifests are of, or, while the table does not ask for any, one that it did not at.

    `claimant` is in whose name runs are claimed.
    """

    kind = KIND

    def __init__(
        self,
        index: Index,
        upkeep: UpkeepIndex,
        storage: Storage,
        *,
        claimant: str,
        limits: ManifestLimits = MANIFEST_LIMITS,
        faults: FaultPoints = NO_FAULTS,
    ) -> None:
        self._index = index
        self._upkeep = upkeep
        self._storage = storage
        self._claimant = claimant
        self._limits = limits
        self._faults = faults

    async def run(self, table: TableRecord, record: UpkeepRecord) -> Done:
        version = table.published_version
        state = await self._index.state_at(table.id, version)
        if state is None or state.metadata is None:
            raise NotFound(
                f"version {version} of the table is not held any more", code=Code.VERSION_NOT_FOUND
            )
        if not writes_manifests(state.metadata.configuration):
            return Done(version=version, due_version=AT_NEW_METADATA)
        partitions = await self._partitions(table, record.version)
        if partitions is None or partitions:
            await self._make(table, state.metadata, partitions)
        return Done(version=version, due_version=version + 1)

    async def _partitions(self, table: TableRecord, cursor: int) -> Sequence[str] | None:
        """Those that were touched since the cursor; None for all that there are."""
        if cursor < 0:
            return None
        changed = await self._upkeep.changed_metadata(table.id, after=cursor)
        if changed is not None and changed <= table.published_version:
            return None
        if not await self._has_manifests(table):
            return None
        return await self._upkeep.touched_partitions(
            table.id, after=cursor, through=table.published_version
        )

    async def _has_manifests(self, table: TableRecord) -> bool:
        """Somebody may have removed the whole folder, to have it made anew."""
        async for partitions in self._storage.manifests(table.location).partitions():
            if partitions:
                return True
        return False

    async def _make(
        self, table: TableRecord, metadata: Metadata, partitions: Sequence[str] | None
    ) -> None:
        version = table.published_version
        try:
            await make_manifests(
                self._index,
                self._storage,
                table,
                metadata,
                version=version,
                # Nobody asked for it: a schema has its part as a principal has.
                who=f"schema {table.name.rpartition('.')[0]}",
                partitions=partitions,
                limits=self._limits,
                faults=self._faults,
            )
        except Refused as refused:
            # Nothing was written of what readers would read wrongly.
            raise self._failed(table, refused) from refused
        except ServiceError as error:
            await self._leave_newer(table.id, version)
            raise self._failed(table, error) from error
        await self._leave_newer(table.id, version)

    async def _leave_newer(self, table_id: str, version: int) -> None:
        """Whoever claimed the table since may have come further before the last of these was put:
        it goes on from here, then."""
        if not await self._upkeep.has_claim(table_id, KIND, by=self._claimant):
            await set_back(self._upkeep, table_id, version)

    def _failed(self, table: TableRecord, error: ServiceError) -> HookFailed:
        fields = {"hook": NAME, "table_id": table.id, "version": table.published_version}
        logger.warning("a hook failed", extra={**fields, "reason": error.detail})
        return HookFailed(f"version {table.published_version}: {error.detail}")
