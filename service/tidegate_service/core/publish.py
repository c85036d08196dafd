"""Publishing: ratified versions of catalog-managed tables become `_delta_log/<v>.json`.

Versions are published in order and byte for byte. A file that is there already is accepted
only if its bytes are equal; else the table is quarantined, and nothing is overwritten.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate_protocol.content import Content, is_same
from tidegate_service.core import heavy
from tidegate_service.core.errors import StorageUnavailable, StorageUnknown
from tidegate_service.core.faults import NO_FAULTS, FaultPoints, Step, around
from tidegate_service.core.ports import Index, Log, PutResult, Storage
from tidegate_service.core.records import TableRecord

BATCH_VERSIONS = 500
BATCH_S = 0.5
"""What is put into the log before the index is told of it."""
BYTES_AN_ACTION = 400
"""Roughly, to tell which contents are long to compare."""
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
    index: Index, storage: Storage, table: TableRecord, *, faults: FaultPoints = NO_FAULTS
) -> int:
    """Publish what waits, up to the table's latest version at least; returns how many versions
    became published here.

    Safe to run in several instances at once: whoever comes second finds equal bytes. Ends early
    where a version cannot be published, and raises `StorageUnavailable` where that is the first
    one; raises `IndexUnavailable`. The rest is then published by the next run.
    """
    count = 0
    published = table.published_version
    while published < table.latest_version:
        try:
            batch = await publish_batch(index, storage, table, faults=faults)
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
    index: Index, storage: Storage, table: TableRecord, *, faults: FaultPoints = NO_FAULTS
) -> Batch:
    """Publish what waits first, whatever `table` knows of its versions. Raises like
    `publish_table`."""
    waiting = await index.unpublished_versions(table.id, limit=BATCH_VERSIONS)
    if not waiting.versions:
        # Another publisher was here first.
        return Batch(count=0, through=table.published_version, behind=0, is_over=True)
    first = waiting.versions[0][0]
    async with around(faults, Step.M8_PUBLISH):
        done, other = await _put(storage.log(table.location), waiting.versions)
    through = first + done - 1
    if done:
        async with around(faults, Step.M9_MARK_PUBLISHED):
            await index.mark_published(table.id, first, through)
    if other:
        await index.quarantine(
            table.id,
            f"version {through + 1} cannot be published: another file of that name with other "
            "bytes lies in the log",
        )
    else:
        # Only what is known to be published is forgotten, in a transaction after the one that
        # says so: the other way round, a lost write would lose the commit.
        async with around(faults, Step.M10_FORGET_CONTENT):
            await index.forget_content(table.id, through=through)
    return Batch(count=done, through=through, behind=waiting.behind - done, is_over=other)


async def _put(log: Log, batch: Sequence[tuple[int, Content]]) -> tuple[int, bool]:
    """Put consecutive versions into the log, for about `BATCH_S`. Returns how many of them are
    in it, and whether the one after them meets a file with other bytes. Raises where nothing is
    known of the first one."""
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
            if not await heavy.run(len(found) // BYTES_AN_ACTION, is_same, content, found):
                return done, True
            done += 1
        except StorageUnavailable:
            # What is there is worth telling; the next run meets the same again, first of all.
            if done:
                break
            raise
        if done == len(batch):
            break
    return done, False


async def _created(log: Log, batch: Sequence[tuple[int, Content]]) -> tuple[int, bool]:
    """How many of the versions this call wrote, and whether the one after them may be there."""
    try:
        results = await log.put_in_order(batch, within_s=BATCH_S)
    except StorageUnknown:
        return 0, True
    created = sum(result is PutResult.CREATED for result in results)
    return created, created < len(results)
