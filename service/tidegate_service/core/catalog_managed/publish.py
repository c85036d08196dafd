"""Publishing: ratified versions of catalog-managed tables become `_delta_log/<v>.json`.

Versions are published in order and byte for byte. A file that is there already is accepted only if
its bytes are equal. Otherwise the table is quarantined, and nothing is overwritten.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tidegate_protocol.log.content import Content, LogFile
from tidegate_protocol.log.segment import BrokenLog
from tidegate_service.core.catalog_managed.findings import strange, unlike
from tidegate_service.core.catalog_managed.questions import Ends, Hole, is_begun
from tidegate_service.core.catalog_managed.set_back import quarantine_for
from tidegate_service.core.errors import IndexUnavailable, StorageUnavailable, StorageUnknown
from tidegate_service.core.instance.own_logs import OwnLogs
from tidegate_service.core.log.catching_up.sight import Behind, SeenBefore
from tidegate_service.core.observe.elapsed import elapsed_s
from tidegate_service.core.observe.faults import NO_FAULTS, FaultPoints, Step, around
from tidegate_service.core.observe.ports_with_faults import with_faults
from tidegate_service.core.ports.index import CommitSection, Index
from tidegate_service.core.ports.records import TableHead
from tidegate_service.core.ports.store.put_result import PutResult
from tidegate_service.core.ports.store.storage import Log, Storage
from tidegate_service.core.sharing import offload

BATCH_VERSIONS = 500
BATCH_S = 0.5
"""A batch, in versions and seconds: then the index is told of what was put into the log."""
STALE_S = 2.0
"""A publisher that was stopped for longer between reading the waiting versions and putting them
reads them again: meanwhile the table may have been forgotten, and another one made at its place.
The wait of the reading itself, for a synchronous standby, does not count: forgetting a table waits
for the same standby, after it."""
CHECK_S = 30.0
"""How long a store is waited for that has to show whether a log is a table's own."""
TAKEN_AT_ONCE = 50
"""How many versions of a batch may be in the log already, put by a publisher that was cut off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The result of one batch: how many versions it published, the last of these, and how many
    still wait. `is_over` says that no waiting version may be published now."""

    count: int
    through: int
    behind: int
    is_over: bool


async def publish_table(
    index: Index,
    storage: Storage,
    table: TableHead,
    *,
    own: OwnLogs | None = None,
    faults: FaultPoints = NO_FAULTS,
    monotonic_s: Callable[[], float] = elapsed_s,
    versions: int = BATCH_VERSIONS,
    at_once: bool = False,
) -> int:
    """Publish the waiting versions, `versions` at a time, up to the table's latest version at
    least. Returns how many versions became published here. `at_once` says that a caller waits.

    Safe to run in several instances at once: the second one finds equal bytes. Ends early where a
    version cannot be published; the next run publishes the rest. Raises `StorageUnavailable` where
    the first version cannot be published, and `IndexUnavailable`.
    """
    own = OwnLogs() if own is None else own
    count = 0
    published = table.published_version
    while published < table.latest_version:
        try:
            batch = await publish_batch(
                index,
                storage,
                table,
                own=own,
                faults=faults,
                monotonic_s=monotonic_s,
                versions=versions,
                at_once=at_once,
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
    table: TableHead,
    *,
    own: OwnLogs | None = None,
    faults: FaultPoints = NO_FAULTS,
    monotonic_s: Callable[[], float] = elapsed_s,
    versions: int = BATCH_VERSIONS,
    at_once: bool = False,
) -> Batch:
    """Publish the first waiting versions in the index, `versions` at most, whatever versions
    `table` has. Raises as `publish_table` does.

    A log that is not in `own` yet is looked at first. If it is not the table's own, the table is
    quarantined, and nothing is put there.
    """
    own, log = own or OwnLogs(), storage.log(table.location)
    index = with_faults(
        index,
        faults,
        {
            Index.mark_published: Step.M9_MARK_PUBLISHED,
            Index.forget_content: Step.M10_FORGET_CONTENT,
        },
    )
    while True:
        waiting = await index.unpublished_versions(table.id, limit=versions, at_once=at_once)
        if not waiting.versions:
            # Another publisher was here first, or the table was forgotten.
            return Batch(count=0, through=table.published_version, behind=0, is_over=True)
        read_s = monotonic_s()
        first = waiting.versions[0][0]
        if not own.has(table.id, first - 1, database=waiting.database):
            if not await _is_own(index, log, table, first - 1, database=waiting.database):
                return Batch(count=0, through=table.published_version, behind=0, is_over=True)
            own.remember(table.id, first - 1, database=waiting.database)
        async with around(faults, Step.M8_PUBLISH):
            if monotonic_s() - read_s > STALE_S:
                continue
            done, other = await _put(log, waiting.versions)
            break
    through = first + done - 1
    if done:
        await index.mark_published(
            table.id, first, through, database=waiting.database, at_once=at_once
        )
        own.remember(table.id, through, database=waiting.database)
    if other is not None:
        async with index.commit_section(table.id) as section:
            _check_database(section, waiting.database)
            found = await unlike(section, through + 1, other)
            if found is not None:
                await quarantine_for(section, found)
    else:
        # Bytes are deleted only after the transaction that marks their versions as published. The
        # other way round, a lost write would lose the commit.
        await index.forget_content(table.id, through=through, at_once=at_once)
    return Batch(
        count=done, through=through, behind=waiting.behind - done, is_over=other is not None
    )


def _check_database(section: CommitSection, database: str) -> None:
    """Raise `IndexUnavailable` where the section is in another database than the versions were read
    from: a difference from one database is no reason to quarantine the table in another."""
    if section.database != database:
        raise IndexUnavailable(
            f"what waits of table {section.table.name} was read from another database than the one "
            "that is there now; it is looked at again"
        )


async def _is_own(
    index: Index, log: Log, table: TableHead, published: int, *, database: str
) -> bool:
    """Whether the log is the table's. If it is not, the table is quarantined. No lock is needed to
    see that the log has the last published version, or nothing where none was published."""
    if published < 0 and not await is_begun(log):
        return True
    version = max(published, 0)
    known, last = await index.commit(table.id, version), await log.read(version)
    if known is None:
        # The table was forgotten.
        return False
    is_last = last is not None and known.content_sha256 in (None, await offload.sha256_of(last))
    if is_last and not await _is_cut(log, version):
        return True
    sight = SeenBefore()
    while True:
        try:
            async with index.commit_section(table.id) as section:
                _check_database(section, database)
                last, _ = await sight.see(section, Ends(section.table.published_version))
                found = await strange(section, sight, last)
                if found is not None:
                    await quarantine_for(section, found)
            return found is None
        except Behind:
            glance = await index.glance(table.id)
            if glance is None:
                # The table was forgotten.
                return False
            await sight.ask(glance, log, within_s=CHECK_S)


async def _is_cut(log: Log, version: int) -> bool:
    """Whether a clean-up may have cut the log behind a version."""
    try:
        return await Hole(version).ask(log, None)
    except BrokenLog:
        return True


async def _put(
    log: Log, batch: Sequence[tuple[int, Content]]
) -> tuple[int, bytes | LogFile | None]:
    """Put consecutive versions into the log, for about `BATCH_S`. Returns how many of them are in
    it, and the log's file of the next version, where that has other bytes. Raises
    `StorageUnavailable` where nothing is known of the first version."""
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
                # The store said that the name was taken, or gave no answer: only bytes are proof.
                raise StorageUnavailable(
                    f"the object store did not say whether version {version} was written"
                )
            if not await offload.is_same(content, found):
                return done, found
            done += 1
        except StorageUnavailable:
            # The versions that are there can be marked; the next run meets the same error first.
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
