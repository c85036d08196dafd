"""Log compaction files: `<first>.<last>.compacted.json`, what the commits from one version to
another add up to, for readers to take in their place.

They bridge the commits behind a table's newest checkpoint where the next checkpoint is long in
coming: a checkpoint of a large table costs its whole state, a compacted file no more than the
commits in it. Where the compacted file would hold as much as the table, none is written, since a
checkpoint is better. Nothing points to a compacted file and nothing rests on it: readers may pass
over it, and so does the service.
"""

from dataclasses import dataclass

from tidegate_protocol.checkpoint import last_checkpoint
from tidegate_protocol.log.file_names import LAST_CHECKPOINT
from tidegate_protocol.replay.commits import parse_commit
from tidegate_protocol.replay.compaction import CannotCompact, Compaction
from tidegate_service.core.errors import IndexUnavailable
from tidegate_service.core.limits import UPKEEP_LIMITS, UpkeepLimits
from tidegate_service.core.observe.faults import NO_FAULTS, CompactionStep, FaultPoints
from tidegate_service.core.observe.ports_with_faults import with_faults
from tidegate_service.core.observe.telemetry import UpkeepKind
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.ports.store.storage import Log, Storage, UnreadableFile
from tidegate_service.core.ports.upkeep.upkeep import Done, UpkeepRecord
from tidegate_service.core.sharing import offload


class Compactions:
    """Implements `core.upkeep.job.Job`. A record's version is the last version that is in a
    compacted file, or that no compacted file is written for. A file has `commits` at least, two or
    more."""

    kind = UpkeepKind.COMPACTION

    def __init__(
        self,
        index: Index,
        storage: Storage,
        *,
        commits: int,
        limits: UpkeepLimits = UPKEEP_LIMITS,
        faults: FaultPoints = NO_FAULTS,
    ) -> None:
        self._index = index
        self._storage = storage
        self._commits = commits
        self._limits = limits
        self._faults = faults

    async def run(self, table: TableRecord, record: UpkeepRecord) -> Done:
        log = with_faults(
            self._storage.log(table.location),
            self._faults,
            {Log.put_compacted: CompactionStep.COMPACTED_PUT},
        )
        # A log that begins at a later version than 0 has a checkpoint of that version.
        before = max(record.version, table.first_version if table.first_version else -1)
        if table.published_version < before + self._commits:
            return self._done(before)
        known = await self._index.known_checkpoint(table.id)
        if known is not None and known.epoch == table.epoch and known.parts:
            # The next checkpoint costs no more, and is read by everybody.
            return self._done(max(before, known.version))
        before = max(before, await _checkpointed(log, table.published_version))
        if table.published_version < before + self._commits:
            return self._done(before)
        until = min(table.published_version, before + self._limits.compacted_commits)
        later = table.published_version + self._commits
        if until - before >= table.num_files:
            # A checkpoint is due as well, and no longer than the compacted file would be.
            return Done(version=before, due_version=later)
        found = await self._read(table, before + 1, until)
        is_shorter = 0 < found.merged.num_actions < table.num_files
        if found.last < before + self._commits or not is_shorter:
            return self._done(found.seen)
        content = await offload.run(offload.HEAVY, found.merged.content)
        trouble = await self._why_another(log, table, before + 1, found.last)
        if trouble is not None:
            return Done(version=before, due_version=later, trouble=trouble)
        # A file that is there already holds the same, whoever wrote it.
        await log.put_compacted(before + 1, found.last, content)
        return self._done(found.last)

    def _done(self, version: int) -> Done:
        return Done(version=version, due_version=version + self._commits)

    async def _read(self, table: TableRecord, first: int, until: int) -> "_Read":
        """As many of the versions as a file may hold."""
        merged, size, most = Compaction(), 0, self._limits.compacted_bytes
        for version in range(first, until + 1):
            content = await self._index.kept_content(table.id, version)
            if not isinstance(content, bytes) or len(content) > most:
                return _Read(merged=merged, last=version - 1, seen=version)
            size += len(content)
            if size > most:
                return _Read(merged=merged, last=version - 1, seen=version - 1)
            try:
                await offload.run(offload.weight_of_log(content), _take, merged, content)
            except CannotCompact:
                return _Read(merged=merged, last=version - 1, seen=version)
        return _Read(merged=merged, last=until, seen=until)

    async def _why_another(self, log: Log, table: TableRecord, first: int, last: int) -> str | None:
        """Why the log is not the one whose versions the index has; None where it is. The log may be
        another table's by now, or the database restored to a time before. A file of the index's
        versions would then tell the log's readers of commits that the log never had. Raises
        `IndexUnavailable` where the index was made anew meanwhile."""
        now = await self._index.table(table.id)
        if now is None or now.epoch != table.epoch:
            raise IndexUnavailable("the index was made anew while its versions were compacted")
        for version in (first, last):
            record = await self._index.commit(table.id, version)
            content = await log.read(version)
            known = None if record is None else record.content_sha256
            if content is None or known != await offload.sha256_of(content):
                return f"version {version} in the log is not what the index has"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """Commits up to `last`, and what they add up to. `seen` is the last version that was looked at.
    Where that is a later version than `last`, it can be in no file."""

    merged: Compaction
    last: int
    seen: int


def _take(merged: Compaction, content: bytes) -> None:
    merged.take(parse_commit(content))


async def _checkpointed(log: Log, published: int) -> int:
    """The version of the checkpoint that readers begin at, by the log's `_last_checkpoint`, whoever
    wrote it; -1 where there is none. A wrong version costs readers time only."""
    try:
        pointer = await log.read_file(LAST_CHECKPOINT, most_bytes=last_checkpoint.MOST_BYTES)
    except UnreadableFile:
        return -1
    version = None if pointer is None else last_checkpoint.version_of(pointer)
    return version if version is not None and 0 <= version <= published else -1
