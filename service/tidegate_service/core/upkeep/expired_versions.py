"""What the index gives up of a table once its log was cleaned up.

Readers of a log that was cut at a checkpoint cannot read the versions before it, and the index does
not promise to have them either. So the rows and bytes of these versions go, and the rows of files
that were removed before. Files that were removed within `delta.deletedFileRetentionDuration` are
still named by checkpoints and kept by VACUUM, so no version goes that is younger. Transaction ids
stay for ever.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from tidegate_protocol.features.upkeep import DAY_MS, deleted_file_retention_ms
from tidegate_protocol.log.actions import Metadata
from tidegate_service.core.errors import NotFound
from tidegate_service.core.limits import UPKEEP_LIMITS, UpkeepLimits
from tidegate_service.core.observe.elapsed import elapsed_s
from tidegate_service.core.observe.faults import NO_FAULTS, AnyStep, ExpiryStep, FaultPoints
from tidegate_service.core.observe.ports_with_faults import Method, with_faults
from tidegate_service.core.observe.telemetry import UpkeepKind
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.records import Glance, TableHead, TableRecord
from tidegate_service.core.ports.upkeep.expired import RowKey
from tidegate_service.core.ports.upkeep.upkeep import Done, UpkeepIndex, UpkeepRecord
from tidegate_service.core.upkeep.clean_up import LEAST_RETENTION_MS, SPREAD_S

T = TypeVar("T")

REMEMBERED = 1000
"""Tables of which it is remembered how far their files were looked at."""


class ExpiredVersions:
    """Implements `core.upkeep.job.Job`. A record's version is the first version of the index once
    the rows of files that were removed before are gone, too; -1 where the index was never cut since
    it was made. Due once a day, in the hour after the logs' clean-up."""

    kind = UpkeepKind.EXPIRED_VERSIONS

    def __init__(
        self,
        index: Index,
        upkeep: UpkeepIndex,
        *,
        limits: UpkeepLimits = UPKEEP_LIMITS,
        faults: FaultPoints = NO_FAULTS,
        monotonic_s: Callable[[], float] = elapsed_s,
    ) -> None:
        self._index = index
        steps: Mapping[Method, AnyStep] = {
            UpkeepIndex.drop_versions: ExpiryStep.DROP_VERSIONS,
            UpkeepIndex.drop_files: ExpiryStep.DROP_FILES,
        }
        self._upkeep = with_faults(upkeep, faults, steps)
        self._limits = limits
        self._monotonic_s = monotonic_s
        self._reached: OrderedDict[str, tuple[int, int, RowKey]] = OrderedDict()

    async def run(self, table: TableRecord, record: UpkeepRecord) -> Done:
        until = self._monotonic_s() + self._limits.run_s
        glance = await self._index.glance(table.id)
        if glance is None:
            raise NotFound(f"there is no table {table.id} any more")
        due_in_s = _until_next_day_s(glance)
        state = await self._index.state_at(table.id, glance.table.latest_version)
        if state is None or state.metadata is None:
            raise NotFound(f"the index of table {table.id} was made anew meanwhile")
        removed_before_ms = _removed_before_ms(glance.now_ms, state.metadata)
        below = await self._below(glance.table, removed_before_ms)
        first = glance.table.first_version
        while first < below:
            dropped = await self._rested(
                self._upkeep.drop_versions(
                    table.id, self.kind, below=below, epoch=glance.table.epoch
                )
            )
            if dropped is None:
                # Made anew or quarantined meanwhile.
                was_cut = first > glance.table.first_version
                return Done(
                    version=max(0, record.version) if was_cut else record.version,
                    due_in_s=due_in_s,
                )
            first = dropped.first
            if not dropped.dropped:
                break
            if self._monotonic_s() > until:
                return Done(version=max(0, record.version), due_in_s=0.0)
        if first == glance.table.first_version and record.version in (-1, first):
            # Never cut, or done with.
            return Done(version=record.version, due_in_s=due_in_s)
        place = glance.table.epoch, first
        if not await self._drop_files(table.id, place, removed_before_ms, until=until):
            return Done(version=max(0, record.version), due_in_s=0.0)
        return Done(version=first, due_in_s=due_in_s)

    async def _below(self, table: TableHead, removed_before_ms: int) -> int:
        """The first version that the index has to hold."""
        cleaned_up = (await self._upkeep.standing(table.id)).get(UpkeepKind.CLEAN_UP)
        if cleaned_up is None or cleaned_up.version <= table.first_version:
            return table.first_version
        oldest = await self._index.version_at(table.id, removed_before_ms - 1)
        return min(cleaned_up.version, table.first_version if oldest is None else oldest)

    async def _drop_files(
        self, table_id: str, place: tuple[int, int], removed_before_ms: int, *, until: float
    ) -> bool:
        """Drop rows of removed files. Returns whether all were looked at. Only this instance knows
        where its last run ended: another instance begins anew, and finds less to drop."""
        *known, after = self._reached.pop(table_id, (*place, None))
        if tuple(known) != place:
            after = None
        while True:
            done = await self._rested(
                self._upkeep.drop_files(table_id, removed_before_ms=removed_before_ms, after=after)
            )
            if done.after is None:
                break
            after = done.after
            if self._monotonic_s() > until:
                self._remember(table_id, place, after)
                return False
        while await self._rested(
            self._upkeep.drop_tombstones(table_id, removed_before_ms=removed_before_ms)
        ):
            if self._monotonic_s() > until:
                self._remember(table_id, place, after)
                return False
        return True

    def _remember(self, table_id: str, place: tuple[int, int], after: RowKey | None) -> None:
        if after is not None:
            self._reached[table_id] = (*place, after)
        while len(self._reached) > REMEMBERED:
            self._reached.popitem(last=False)

    async def _rested(self, work: Awaitable[T]) -> T:
        """What the work returns, after a rest that takes as long as the work took. So commits that
        waited for it, and other work of the database, come before the next batch."""
        began = self._monotonic_s()
        done = await work
        await asyncio.sleep(self._monotonic_s() - began)
        return done


def _removed_before_ms(now_ms: int, metadata: Metadata) -> int:
    """Files that were removed before this time are named by no checkpoint any more. However short
    the table's retention, the time is so long ago that nobody still reads such a file."""
    retention_ms = deleted_file_retention_ms(metadata.configuration)
    return now_ms - max(retention_ms, LEAST_RETENTION_MS)


def _until_next_day_s(glance: Glance) -> float:
    left_ms = DAY_MS - glance.now_ms % DAY_MS
    return left_ms / 1000 + SPREAD_S + int(glance.table.id.replace("-", ""), 16) % SPREAD_S
