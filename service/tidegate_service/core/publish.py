"""Publishing: ratified versions of catalog-managed tables become `_delta_log/<v>.json`.

Versions are published in order and byte for byte. A file that is there already is accepted
only if its bytes are equal; else the table is quarantined, and nothing is overwritten.
"""

from tidegate_service.core.errors import StorageUnavailable, StorageUnknown
from tidegate_service.core.faults import NO_FAULTS, FaultPoints, Step, around
from tidegate_service.core.ports import Index, Log, PutResult, Storage
from tidegate_service.core.records import TableRecord


async def publish_table(
    index: Index, storage: Storage, table: TableRecord, *, faults: FaultPoints = NO_FAULTS
) -> int:
    """Publish every ratified version that waits; returns how many became published here.

    Safe to run in several instances at once: whoever comes second finds equal bytes. Raises
    `StorageUnavailable` or `IndexUnavailable`; the rest is then published by the next run.
    """
    log = storage.log(table.location)
    count = 0
    for version in range(table.published_version + 1, table.latest_version + 1):
        content = await index.content(table.id, version)
        if content is None:
            # Another publisher was here first and the bytes are forgotten.
            continue
        async with around(faults, Step.M8_PUBLISH):
            equal = await _published(log, version, content)
        if not equal:
            await index.quarantine(
                table.id,
                f"version {version} cannot be published: another file of that name with other "
                "bytes lies in the log",
            )
            return count
        async with around(faults, Step.M9_MARK_PUBLISHED):
            await index.mark_published(table.id, version)
        count += 1
    # Only what is known to be published is forgotten, in a transaction after the one that says
    # so: the other way round, a lost write would lose the commit.
    async with around(faults, Step.M10_FORGET_CONTENT):
        await index.forget_content(table.id, through=table.latest_version)
    return count


async def _published(log: Log, version: int, content: bytes) -> bool:
    unanswered: StorageUnknown | None = None
    try:
        if await log.put_if_absent(version, content) is PutResult.CREATED:
            return True
    except StorageUnknown as error:
        unanswered = error
    found = await log.read(version)
    if found is None:
        # Also where the store said that the name was taken: only its bytes are proof of that.
        raise StorageUnavailable(
            f"the object store did not say whether version {version} was written"
        ) from unanswered
    return found == content
