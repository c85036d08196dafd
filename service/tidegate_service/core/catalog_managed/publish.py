"""Publishing: ratified versions of catalog-managed tables become `_delta_log/<v>.json`.

Versions are published in order and byte for byte. A file that is there already is accepted only if
its bytes are equal. Otherwise the table is quarantined, and nothing is overwritten.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tidegate_protocol.log.content import Content, LogFile
from tidegate_service.core.catalog_managed.findings import unlike
from tidegate_service.core.catalog_managed.look import (
    PAGE_S,
    Unseen,
    WentOn,
    check_database,
    look,
)
from tidegate_service.core.catalog_managed.set_back import quarantine_for
from tidegate_service.core.errors import StorageUnavailable, StorageUnknown
from tidegate_service.core.instance.own_logs import OwnLogs
from tidegate_service.core.log.catching_up.sight import Behind, SeenBefore
from tidegate_service.core.observe.elapsed import elapsed_s
from tidegate_service.core.observe.faults import NO_FAULTS, FaultPoints, Step, around
from tidegate_service.core.observe.ports_with_faults import with_faults
from tidegate_service.core.ports.index import Index
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
WENT_ON = 6
"""So many looks at a log are made at most while another instance publishes to it."""
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

    A log that is not in `own` yet is looked at first. If it is not the table's own, the table is
    quarantined, and nothing is put there.

    Safe to run in several instances at once: the second one finds equal bytes. Ends early where a
    version cannot be published; the next run publishes the rest. Raises `StorageUnavailable` where
    the first version cannot be published, and `IndexUnavailable`.
    """
    own = OwnLogs() if own is None else own
    log = storage.log(table.location)
    count, looks = 0, 0
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
        except Unseen as unseen:
            looks += 1
            try:
                if await look(index, log, table, unseen, own=own):
                    continue
            except WentOn:
                if looks < WENT_ON:
                    continue
                raise
            break
        except StorageUnavailable:
            if count:
                break
            raise
        count += batch.count
        published = batch.through
        if batch.is_over:
            break
    return count


async def publish_landed(
    storage: Storage,
    table: TableHead,
    content: Content,
    *,
    database: str,
    own: OwnLogs,
    is_fresh: Callable[[], bool],
    faults: FaultPoints = NO_FAULTS,
) -> None:
    """Put the table's latest version, which landed just now in `database`, into the log, with the
    bytes that landed. The index is told of it by the next batch, which finds it there.

    Nothing is done where `publish_table` has to do it: something before it is not in the log, the
    log was not seen to be the table's own, the version is there already, or it is not fresh
    (`STALE_S`). Raises `StorageUnavailable`.
    """
    is_own = own.has(table.id, table.published_version, database=database)
    if not (is_own and own.lacks_only_head(table, database=database)):
        return
    async with around(faults, Step.M8_PUBLISH):
        if not is_fresh():
            return
        created, _ = await _created(storage.log(table.location), [(table.latest_version, content)])
    if created:
        own.put(table, database=database)


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
    `table` has. Raises as `publish_table` does, and `Unseen` where the log is not in `own` yet.
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
            raise Unseen(first - 1, waiting.database)
        async with around(faults, Step.M8_PUBLISH):
            if monotonic_s() - read_s > STALE_S:
                continue
            looks = own.has_put(table.id, first)
            done, other = await _put(log, waiting.versions, looks=looks)
            break
    through = first + done - 1
    if done:
        await index.mark_published(
            table.id, first, through, database=waiting.database, at_once=at_once
        )
        own.remember(table.id, through, database=waiting.database)
    if other is not None:
        await _quarantine(index, log, table, through + 1, other, database=waiting.database)
    else:
        # Bytes are deleted only after the transaction that marks their versions as published. The
        # other way round, a lost write would lose the commit.
        await index.forget_content(table.id, through=through, at_once=at_once)
    return Batch(
        count=done, through=through, behind=waiting.behind - done, is_over=other is not None
    )


async def _quarantine(
    index: Index, log: Log, table: TableHead, version: int, other: bytes | LogFile, *, database: str
) -> None:
    """Quarantine the table, whose version cannot be published since the log has `other` there."""
    sight = SeenBefore()
    while True:
        try:
            async with index.commit_section(table.id) as section:
                check_database(section, database)
                found = await unlike(section, sight, version, other)
                if found is not None:
                    await quarantine_for(section, found)
            return
        except Behind:
            glance = await index.glance(table.id)
            if glance is None:
                # The table was forgotten.
                return
            await sight.ask(glance, log, within_s=PAGE_S)


async def _put(
    log: Log, batch: Sequence[tuple[int, Content]], *, looks: bool
) -> tuple[int, bytes | LogFile | None]:
    """Put consecutive versions into the log, for about `BATCH_S`. Returns how many of them are in
    it, and the log's file of the next version, where that has other bytes. With `looks`, and
    wherever the version before was there already, a version is read before it is put. Raises
    `StorageUnavailable` where nothing is known of the first version."""
    done, is_taken = 0, False
    for _ in range(TAKEN_AT_ONCE):
        try:
            if not looks:
                created, is_taken = await _created(log, batch[done:])
                done += created
                if not is_taken:
                    break
            version, content = batch[done]
            found = await log.read(version)
            if found is not None and not await offload.is_same(content, found):
                return done, found
            if found is None and is_taken:
                # The store said that the name was taken, or gave no answer: only bytes are proof.
                raise StorageUnavailable(
                    f"the object store did not say whether version {version} was written"
                )
            looks, is_taken = found is not None, False
            done += looks
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
