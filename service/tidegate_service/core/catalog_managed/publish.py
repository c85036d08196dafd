"""Publishing: ratified versions of catalog-managed tables become `_delta_log/<v>.json`.

Versions are published in order and byte for byte. A file that is there already is accepted
only if its bytes are equal; else the table is quarantined, and nothing is overwritten.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tidegate_protocol.log.content import Content, LogFile, is_same, sha256_of
from tidegate_protocol.proposal.transaction import BYTES_AN_ACTION
from tidegate_service.core.catalog_managed.own_log import OwnLogs, ends, is_begun
from tidegate_service.core.catalog_managed.set_back import quarantine_for, strange, unlike
from tidegate_service.core.errors import IndexUnavailable, StorageUnavailable, StorageUnknown
from tidegate_service.core.observe.elapsed import elapsed_s
from tidegate_service.core.observe.faults import NO_FAULTS, FaultPoints, Step, around
from tidegate_service.core.ports.index import CommitSection, Index, Log, PutResult, Storage
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.sharing import offload

BATCH_VERSIONS = 500
BATCH_S = 0.5
"""What is put into the log before the index is told of it."""
STALE_S = 2.0
"""A publisher that was stopped for longer between reading what waits and writing it reads it again:
meanwhile the table may have been forgotten, and another one made at its place. What the reading
itself waits for, a synchronous standby, whoever forgets the table waits for as well, behind it."""
TAKEN_AT_ONCE = 50
"""How many versions of those may have been there before, after a publisher that was cut off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What became of one: how many versions it published, and the last of them; how many wait
    still. It is the last one where `is_over`: nothing waits that may be published."""

    count: int
    through: int
    behind: int
    is_over: bool


async def publish_table(
    index: Index,
    storage: Storage,
    table: TableRecord,
    *,
    own: OwnLogs | None = None,
    faults: FaultPoints = NO_FAULTS,
    monotonic_s: Callable[[], float] = elapsed_s,
) -> int:
    """Publish what waits, up to the table's latest version at least; returns how many versions
    became published here.

    Safe to run in several instances at once: whoever comes second finds equal bytes. Ends early
    where a version cannot be published, and raises `StorageUnavailable` where that is the first
    one; raises `IndexUnavailable`. The rest is then published by the next run.
    """
    own = OwnLogs() if own is None else own
    count = 0
    published = table.published_version
    while published < table.latest_version:
        try:
            batch = await publish_batch(
                index, storage, table, own=own, faults=faults, monotonic_s=monotonic_s
            )
        except StorageUnavailable:
            if count:
                break
            raise
        count += batch.count
        published = batch.through
        if batch.is_over:
            break
    return count


async def publish_batch(
    index: Index,
    storage: Storage,
    table: TableRecord,
    *,
    own: OwnLogs | None = None,
    faults: FaultPoints = NO_FAULTS,
    monotonic_s: Callable[[], float] = elapsed_s,
) -> Batch:
    """Publish what waits first, whatever `table` knows of its versions. Raises like
    `publish_table`.

    A log that is not in `own` yet is looked at first: one that is not the table's own quarantines
    it, and nothing is put there.
    """
    own, log = own or OwnLogs(), storage.log(table.location)
    while True:
        waiting = await index.unpublished_versions(table.id, limit=BATCH_VERSIONS)
        if not waiting.versions:
            # Another publisher was here first, or the table was forgotten.
            return Batch(count=0, through=table.published_version, behind=0, is_over=True)
        read_s = monotonic_s()
        first = waiting.versions[0][0]
        if not own.has(table.id, first - 1, database=waiting.database):
            if not await _is_own(index, log, table, first - 1, database=waiting.database):
                return Batch(count=0, through=table.published_version, behind=0, is_over=True)
            own.note(table.id, first - 1, database=waiting.database)
        async with around(faults, Step.M8_PUBLISH):
            if monotonic_s() - read_s > STALE_S:
                continue
            done, other = await _put(log, waiting.versions)
            break
    through = first + done - 1
    if done:
        async with around(faults, Step.M9_MARK_PUBLISHED):
            await index.mark_published(table.id, first, through, database=waiting.database)
        own.note(table.id, through, database=waiting.database)
    if other is not None:
        async with index.commit_section(table.id) as section:
            _check_database(section, waiting.database)
            found = await unlike(section, through + 1, other)
            if found is not None:
                await quarantine_for(section, found)
    else:
        # Only what is known to be published is forgotten, in a transaction after the one that
        # says so: the other way round, a lost write would lose the commit.
        async with around(faults, Step.M10_FORGET_CONTENT):
            await index.forget_content(table.id, through=through)
    return Batch(
        count=done, through=through, behind=waiting.behind - done, is_over=other is not None
    )


def _check_database(section: CommitSection, database: str) -> None:
    """See that the section is in the database that the versions were read from: what one database
    lacks, or has otherwise, is no reason to quarantine the table in another."""
    if section.database != database:
        raise IndexUnavailable(
            f"what waits of table {section.table.name} was read from another database than the one "
            "that is there now; it is looked at again"
        )


async def _is_own(
    index: Index, log: Log, table: TableRecord, published: int, *, database: str
) -> bool:
    """Whether the log is the table's, which is quarantined where it is not. No lock is needed to
    see that the last published version is there, or nothing where none is."""
    if published < 0 and not await is_begun(log):
        return True
    version = max(published, 0)
    known, last = await index.commit(table.id, version), await log.read(version)
    if known is None:
        # The table was forgotten.
        return False
    if last is not None and known.content_sha256 in (None, sha256_of(last)):
        return True
    async with index.commit_section(table.id) as section:
        _check_database(section, database)
        last, _ = await ends(section, log)
        found = await strange(section, log, last)
        if found is not None:
            await quarantine_for(section, found)
    return found is None


async def _put(
    log: Log, batch: Sequence[tuple[int, Content]]
) -> tuple[int, bytes | LogFile | None]:
    """Put consecutive versions into the log, for about `BATCH_S`. Returns how many of them are
    in it, and the file that the one after them meets, where that has other bytes. Raises where
    nothing is known of the first one."""
    done = 0
    for _ in range(TAKEN_AT_ONCE):
        try:
            created, is_taken = await _created(log, batch[done:])
            done += created
            if not is_taken:
                break
            version, content = batch[done]
            found = await log.read(version)
            if found is None:
                # The store said that the name was taken, or nothing: only bytes are proof of it.
                raise StorageUnavailable(
                    f"the object store did not say whether version {version} was written"
                )
            if not await offload.run(len(found) // BYTES_AN_ACTION, is_same, content, found):
                return done, found
            done += 1
        except StorageUnavailable:
            # What is there is worth telling; the next run meets the same again, first of all.
            if done:
                break
            raise
        if done == len(batch):
            break
    return done, None


async def _created(log: Log, batch: Sequence[tuple[int, Content]]) -> tuple[int, bool]:
    """How many of the versions this call wrote, and whether the one after them may be there."""
    try:
        results = await log.put_in_order(batch, within_s=BATCH_S)
    except StorageUnknown:
        return 0, True
    created = sum(result is PutResult.CREATED for result in results)
    return created, created < len(results)
