"""Version checksums: `<version>.crc` beside a table's commits.

A run writes the checksum of the head, whose counters the index keeps. So it costs about the same
however large the table is. Versions between two heads get checksums, too, where these versions and
the table's files are few: they are counted from the rows of files.
"""

from collections import OrderedDict
from dataclasses import dataclass

from tidegate_protocol.checksum.checksum import encode
from tidegate_service.core.checkpoints.checksum import checksum_of, may_have_checksum
from tidegate_service.core.limits import UPKEEP_LIMITS, UpkeepLimits
from tidegate_service.core.observe.faults import NO_FAULTS, ChecksumStep, FaultPoints, around
from tidegate_service.core.observe.telemetry import UpkeepKind
from tidegate_service.core.ports.checkpoints import Counted
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.ports.store.storage import Log, Storage
from tidegate_service.core.ports.upkeep.upkeep import Done, UpkeepRecord, UpkeepStanding
from tidegate_service.core.sharing import offload


class Checksums:
    """Implements `core.upkeep.job.Job`. A record's version is the last one that was written."""

    kind = UpkeepKind.CHECKSUM

    def __init__(
        self,
        upkeep: UpkeepStanding,
        storage: Storage,
        *,
        limits: UpkeepLimits = UPKEEP_LIMITS,
        faults: FaultPoints = NO_FAULTS,
    ) -> None:
        self._upkeep = upkeep
        self._storage = storage
        self._limits = limits
        self._faults = faults
        self._waiting: OrderedDict[str, _Waiting] = OrderedDict()
        self._waiting_bytes = 0

    async def run(self, table: TableRecord, record: UpkeepRecord) -> Done:
        """Write what is due. The head of a table that is being committed to is hardly ever
        published yet, so its checksum is kept until it is."""
        waiting = self._taken(table.id)
        if (
            waiting is None
            or waiting.epoch != table.epoch
            or waiting.version > table.published_version
        ):
            counted = await self._upkeep.counted(table.id)
            if counted is None or not may_have_checksum(counted, self._limits):
                return Done(version=record.version, due_version=table.published_version + 1)
            waiting = _waiting(counted)
            if waiting.version > counted.table.published_version:
                self._keep(table.id, waiting)
                return Done(version=record.version, due_version=waiting.version)
        version = waiting.version
        log = self._storage.log(table.location)
        between = range(max(record.version, table.first_version - 1) + 1, version)
        for each in between if len(between) <= self._limits.checksums_between else ():
            counted = await self._upkeep.counted(table.id, each)
            is_same = counted is not None and counted.table.epoch == table.epoch
            if counted is not None and is_same and may_have_checksum(counted, self._limits):
                await self._put(log, _waiting(counted))
        if not await self._put(log, waiting):
            return Done(
                version=record.version,
                due_version=version + 1,
                trouble=f"version {version} in the log is not what the index has",
            )
        return Done(version=version, due_version=version + 1)

    async def _put(self, log: Log, waiting: "_Waiting") -> bool:
        """Put the checksum where the log has its version; False where it has not. After a restore
        or a failover, the index may have a version, or a table, that is gone from the log. Its
        checksum would tell readers that the log is broken. A checksum of another writer is never
        overwritten."""
        content = await log.read(waiting.version)
        if content is None or waiting.content_sha256 != await offload.sha256_of(content):
            return False
        async with around(self._faults, ChecksumStep.CHECKSUM_PUT):
            await log.put_checksum(waiting.version, waiting.checksum)
        return True

    def _keep(self, table_id: str, waiting: "_Waiting") -> None:
        """Keep a checksum until its version is published. Where too many are kept, the oldest is
        dropped, and its table counted again later."""
        self._waiting[table_id] = waiting
        self._waiting_bytes += len(waiting.checksum)
        most, most_bytes = self._limits.waiting_checksums, self._limits.waiting_checksum_bytes
        while len(self._waiting) > most or self._waiting_bytes > most_bytes:
            self._taken(next(iter(self._waiting)))

    def _taken(self, table_id: str) -> "_Waiting | None":
        waiting = self._waiting.pop(table_id, None)
        if waiting is not None:
            self._waiting_bytes -= len(waiting.checksum)
        return waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class _Waiting:
    """A checksum's file, and the digest of the version that it is of."""

    epoch: int
    version: int
    content_sha256: str | None
    checksum: bytes


def _waiting(counted: Counted) -> _Waiting:
    return _Waiting(
        epoch=counted.table.epoch,
        version=counted.head.version,
        content_sha256=counted.head.content_sha256,
        checksum=encode(checksum_of(counted)),
    )
