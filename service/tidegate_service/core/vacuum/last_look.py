"""What is asked again right before files go: nobody may have named them since they were found."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.paths import identity
from tidegate_service.core.context import Context
from tidegate_service.core.errors import NotFound, Unavailable
from tidegate_service.core.instance.pending_proposals import adds_of
from tidegate_service.core.maintenance.freshness import read_to_end
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.ports.store.data_files import DataFile
from tidegate_service.core.ports.store.data_names import vector_files, within
from tidegate_service.core.sharing import offload
from tidegate_service.core.vacuum.late_names import LateNames
from tidegate_service.core.vacuum.request import Horizon


@dataclass(slots=True)
class LastLook:
    """`table` is as it was before the listing. The table has come to version `at_least` since."""

    context: Context
    table: TableRecord
    horizon: Horizon
    at_least: int
    _looking: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def unnamed(self, files: Sequence[DataFile], late: LateNames) -> list[DataFile]:
        """Those of the files that may go now. Raises as `by_path` and `LateNames` do, and where the
        log of this table, or of one that names its files, cannot be read.

        One at a time, so that nothing else is waited for once the logs are read."""
        async with self._looking:
            await late.read_clones()
            own = await self.context.index.glance(self.table.id)
            if own is not None:
                if own.database != self.horizon.database:
                    raise Unavailable(
                        f"the database of table {self.table.name} is another one since the vacuum "
                        "began, and may know less; vacuum again"
                    )
                # Where its log turns out to be another table's, the table is closed then.
                await read_to_end(self.context, own)
            left, latest_version = await self.by_path(files)
            await late.read_own(latest_version)
            return late.without(left)

    async def by_path(self, files: Sequence[DataFile]) -> tuple[list[DataFile], int]:
        """Those of the files that the index names by no path now, and the latest version. Raises
        `Unavailable` where what was found does not hold any more: the index was made anew, has lost
        versions, was cut, or is closed to commits; and where a proposal may land that is not known.
        """
        # Before the index is asked: what lands in between is found there.
        pending = await self._pending()
        paths = [file.path for file in files]
        still = await self.context.index.still_named(
            self.table.id, paths, since=self.horizon.since, removed_ms=self.horizon.removed_ms
        )
        if still is None:
            raise NotFound(f"table {self.table.name} is gone", code=Code.TABLE_NOT_FOUND)
        is_same = still.epoch == self.table.epoch and still.latest_version >= self.at_least
        if not (is_same and still.is_active):
            raise Unavailable(
                f"the index of table {self.table.name} was made anew or closed meanwhile; "
                "vacuum again"
            )
        if still.first_version > self.horizon.since:
            raise Unavailable(
                f"versions of table {self.table.name} within the retention of the vacuum have "
                "expired meanwhile; vacuum again"
            )
        left = [file for file in files if file.path not in still.paths and file.path not in pending]
        return left, still.latest_version

    async def _pending(self) -> frozenset[str]:
        proposals = self.context.pending.of(self.table.id, now_s=self.context.monotonic_s())
        if proposals is None:
            raise Unavailable(
                f"a large proposal to table {self.table.name}, whose writer has gone, may be "
                "decided yet, and which files it names is not known; vacuum again in a minute"
            )

        def named() -> frozenset[str]:
            names = set()
            for add in adds_of(proposals):
                names.add(identity(add.path))
                if add.deletion_vector is not None:
                    names.update(vector_files(add.deletion_vector.unique_id))
            places = (within(name, self.table.location) for name in names)
            return frozenset(place for place in places if place is not None)

        return await offload.run(sum(each.weight for each in proposals), named)
