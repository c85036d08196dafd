"""The clean-up of a log: what is older than `delta.logRetentionDuration` is deleted.

A log is cut at a checkpoint (`tidegate_protocol.log.expiry`). The checkpoint was read to its end
before, and has what the index has, since readers have nothing else from then on. Files are deleted
in the order of their versions, several at a time in an object store, so a run that is cut off may
leave a hole before the checkpoint. Readers begin at the checkpoint, whatever is left before it, and
the next run goes on. The audit trail records the clean-up before the first file is deleted.
"""

from collections import OrderedDict
from collections.abc import Callable

from tidegate_protocol.base.text import excerpt
from tidegate_protocol.features.properties import TableProperties
from tidegate_protocol.features.upkeep import (
    DAY_MS,
    LOG_RETENTION,
    cleans_expired_logs,
    log_retention_ms,
    protected_before,
)
from tidegate_protocol.log.expiry import Expiry, cutoff_ms, version_of
from tidegate_protocol.log.segment import Checkpoint
from tidegate_service.core.access.audit import Change, Deed
from tidegate_service.core.access.roles import SERVICE
from tidegate_service.core.checkpoints.comparison import difference
from tidegate_service.core.checkpoints.sidecars import remove_unreferenced
from tidegate_service.core.errors import NotFound
from tidegate_service.core.instance.replicated_heads import ReplicatedHeads
from tidegate_service.core.limits import UPKEEP_LIMITS, UpkeepLimits
from tidegate_service.core.observe.elapsed import elapsed_s
from tidegate_service.core.observe.faults import NO_FAULTS, CleanUpStep, FaultPoints, around
from tidegate_service.core.observe.telemetry import SILENT, Telemetry, UpkeepKind
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.records import Glance, TableRecord
from tidegate_service.core.ports.store.expired import DeletionRefused, ExpiredLog
from tidegate_service.core.ports.store.storage import Log, Storage, UnreadableFile
from tidegate_service.core.ports.upkeep.upkeep import Done, UpkeepIndex, UpkeepRecord
from tidegate_service.core.upkeep.unread_commits import why_stale

LEAST_RETENTION_MS = 60 * 60 * 1000
"""Nothing younger is deleted, however short a table's own retention: a request, a publisher or a
PUT that is on its way may still need it."""
CHECKED = 1000
"""Tables whose last checkpoint that was read is remembered."""
SPREAD_S = 3600
"""Tables are cleaned up within so long after midnight, not all at once."""


class CleanUp:
    """Implements `core.upkeep.job.Job`. A record's version is the first one that is left in the
    log, -1 where nothing was deleted yet. Due once a day: cuts are at midnight."""

    kind = UpkeepKind.CLEAN_UP

    def __init__(
        self,
        index: Index,
        upkeep: UpkeepIndex,
        storage: Storage,
        *,
        limits: UpkeepLimits = UPKEEP_LIMITS,
        faults: FaultPoints = NO_FAULTS,
        telemetry: Telemetry = SILENT,
        monotonic_s: Callable[[], float] = elapsed_s,
    ) -> None:
        self._index = index
        self._upkeep = upkeep
        self._storage = storage
        self._limits = limits
        self._faults = faults
        self._telemetry = telemetry
        self._monotonic_s = monotonic_s
        self._heads = ReplicatedHeads()
        self._checked: OrderedDict[str, tuple[int, Checkpoint]] = OrderedDict()

    async def run(self, table: TableRecord, record: UpkeepRecord) -> Done:
        # A synchronous standby that takes over must know the rules that the log is cut by.
        glance = await self._index.told_glance(table.id, known=self._heads)
        if glance is None:
            raise NotFound(f"there is no table {table.id} any more")
        due_in_s = _until_next_day_s(glance)
        head = glance.table
        state = await self._index.state_at(table.id, head.latest_version)
        if state is None:
            raise NotFound(f"the index of table {table.id} was made anew meanwhile")
        metadata, protocol = state.metadata, state.protocol
        assert metadata is not None, "it has a version"
        assert protocol is not None, "it has a version"
        if not cleans_expired_logs(metadata.configuration):
            return Done(version=record.version, due_in_s=due_in_s)
        retention_ms = log_retention_ms(metadata.configuration)
        if retention_ms is None:
            unread = excerpt(metadata.configuration[LOG_RETENTION])
            return Done(
                version=record.version,
                due_in_s=due_in_s,
                trouble=f"{LOG_RETENTION} is {unread}, which is no interval that can be read; "
                "nothing is deleted",
            )
        before_ms = cutoff_ms(glance.now_ms, max(retention_ms, LEAST_RETENTION_MS))
        run = _Run(self._storage, head.with_state(protocol, metadata))
        try:
            await self._check_current(run)
            async with around(self._faults, CleanUpStep.L1_CHECK):
                await self._look(
                    run, before_ms, protected_before(protocol, metadata), noted=record.version
                )
            if run.first is not None and run.below > run.first:
                await self._remove(run)
            if run.is_whole:
                await self._check_current(run)
                async with around(self._faults, CleanUpStep.L4_REMOVE_SIDECARS):
                    await remove_unreferenced(
                        run.log,
                        run.expired,
                        glance.table,
                        protocol,
                        before_ms=before_ms,
                        limits=self._limits,
                        monotonic_s=self._monotonic_s,
                    )
        except (DeletionRefused, CannotCut) as hindered:
            return Done(version=record.version, due_in_s=due_in_s, trouble=str(hindered))
        if not run.is_whole:
            return Done(version=record.version, due_in_s=0.0)
        return Done(version=max(record.version, run.below), due_in_s=due_in_s)

    async def _check_current(self, run: "_Run") -> None:
        """Raise `CannotCut` where the table's rules may be others by now."""
        stale = await why_stale(self._index, run.log, run.table, self._limits)
        if stale is not None:
            raise CannotCut(f"the log is not cleaned up before tomorrow: {stale}")

    async def _look(self, run: "_Run", before_ms: int, protected: int, *, noted: int) -> None:
        """Find out below which version the log is to be deleted. Raises `CannotCut`. `noted` is the
        first version that is left by the table's record. Where the log begins later, a run was cut
        off after it had deleted, and before its record was written."""
        table = run.table
        oldest = await self._index.version_at(table.id, before_ms - 1)
        assert table.metadata is not None, "it has a version"
        properties = TableProperties.parse(table.metadata.configuration)
        since = properties.in_commit_timestamp_enablement_version or 0
        expiry = Expiry(before_ms, dated_since=since if properties.in_commit_timestamps else None)
        try:
            async for entries in run.log.entries():
                for entry in entries:
                    expiry.take(entry.name, entry.size, entry.modified_ms)
                if expiry.is_over:
                    break
        except UnreadableFile:
            run.is_whole = False
        run.first = expiry.first
        most = min(-1 if oldest is None else oldest, table.published_version)
        checkpoint = expiry.cut(least=table.first_version, most=most)
        first = expiry.first
        is_wanted = checkpoint is not None and first is not None and checkpoint.version > first
        if checkpoint is None or not is_wanted or checkpoint.version < protected:
            # Another run at once would find the same.
            run.is_whole = True
            if checkpoint is not None and checkpoint.version == first and first > max(noted, 0):
                await self._check(run.log, table, checkpoint)
                run.below = first
        else:
            await self._check(run.log, table, checkpoint)
            run.below = checkpoint.version

    async def _check(self, log: Log, table: TableRecord, checkpoint: Checkpoint) -> None:
        """Raise `CannotCut` unless the checkpoint is what the index has of its version. A
        checkpoint that passed is not read again for the next portion of the log."""
        if self._checked.get(table.id) == (table.epoch, checkpoint):
            return
        version = checkpoint.version
        try:
            found = await difference(self._index, log, table, checkpoint)
        except UnreadableFile as error:
            raise CannotCut(
                f"the checkpoint of version {version} cannot be read: {error}"
            ) from None
        if found is not None:
            raise CannotCut(
                f"the checkpoint of version {version} is not what the index has of it: {found}; "
                "compare the table with `tidegate verify`"
            )
        self._checked[table.id] = (table.epoch, checkpoint)
        while len(self._checked) > CHECKED:
            self._checked.popitem(last=False)

    async def _remove(self, run: "_Run") -> None:
        """Delete the files of versions below the cut, in order. Raises `DeletionRefused`."""
        async with around(self._faults, CleanUpStep.L2_RECORD):
            change = Change(
                deed=Deed.CLEAN_UP, by=SERVICE, from_version=run.first, version=run.below - 1
            )
            await self._upkeep.record_change(run.table.id, change)
        until = self._monotonic_s() + self._limits.run_s
        names: list[str] = []
        at_once = self._limits.removed
        try:
            async for entries in run.log.entries():
                versions = [version_of(entry.name) for entry in entries]
                names += [
                    entry.name
                    for entry, version in zip(entries, versions, strict=True)
                    if version is not None and version < run.below
                ]
                while len(names) >= at_once:
                    await self._remove_some(run, names[:at_once])
                    del names[:at_once]
                    if self._monotonic_s() > until:
                        run.is_whole = False
                        return
                if any(version is not None and version >= run.below for version in versions):
                    break
        except UnreadableFile:
            run.is_whole = False
        await self._remove_some(run, names)

    async def _remove_some(self, run: "_Run", names: list[str]) -> None:
        await self._check_current(run)
        async with around(self._faults, CleanUpStep.L3_REMOVE):
            await run.expired.remove(names, below=run.below)
        self._telemetry.cleaned_up(len(names))


class CannotCut(Exception):
    """The log cannot be cut where it should be; the message says why."""


class _Run:
    """One clean-up of a table's log: files of versions from `first` to before `below` are to go.
    `is_whole` is False where not all was seen or done, and the next run goes on."""

    def __init__(self, storage: Storage, table: TableRecord) -> None:
        self.table = table
        self.log: Log = storage.log(table.location)
        self.expired: ExpiredLog = storage.expired(table.location)
        self.first: int | None = None
        self.below = -1
        self.is_whole = True


def _until_next_day_s(glance: Glance) -> float:
    left_ms = DAY_MS - glance.now_ms % DAY_MS
    return left_ms / 1000 + int(glance.table.id.replace("-", ""), 16) % SPREAD_S
