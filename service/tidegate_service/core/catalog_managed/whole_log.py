"""Published versions of a catalog-managed table whose files are gone from its log.

The index keeps the bytes of every version that it ratified, so they can be put back. They are put
back only into a log that is the table's: the versions that are left in it have to be as they were
ratified, and where none is left behind its newest checkpoint, that has to be the table's. Versions
that a checkpoint stands for were cleaned up, and are not put back.
"""

import logging
from collections.abc import Collection, Sequence
from contextlib import aclosing

from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.content import Content, LogFile
from tidegate_protocol.log.segment import BrokenLog, versions_left
from tidegate_service.core.catalog_managed.own_log import NOT_OWN, checkpoint_of_another
from tidegate_service.core.errors import Refused, StorageUnavailable, StorageUnknown
from tidegate_service.core.log.catching_up.versions import contents
from tidegate_service.core.log.files.listing import listed
from tidegate_service.core.ports.index import CommitSection, Index
from tidegate_service.core.ports.records import TableHead
from tidegate_service.core.ports.store.put_result import PutResult
from tidegate_service.core.ports.store.storage import Log
from tidegate_service.core.sharing import offload

logger = logging.getLogger("tidegate.service")

VERSIONS_AT_ONCE = 100
"""So many versions are read or put before the database is asked for more time."""


async def make_whole(section: CommitSection, log: Log) -> str | None:
    """Put back the published versions that the log of the section's table lacks. None where the log
    is whole then. Where it holds something else, nothing is put, and the reason is returned.

    Raises `StorageUnavailable` where a version may not be there yet.
    """
    why = await _still_broken(section, log)
    return None if why is None else f"{why}: {NOT_OWN}"


async def differing(index: Index, log: Log, table: TableHead) -> tuple[int, str] | None:
    """A published version of the table that has other bytes in the log than were ratified, with the
    SHA-256 of the log's bytes. None where there is none. Missing versions are left to `make_whole`.

    The whole log is read, a few versions at a time, without a lock: the publisher compares versions
    that are published meanwhile.
    """
    last = table.published_version
    while records := await index.history(
        table.id, from_version=None, to_version=last, limit=VERSIONS_AT_ONCE
    ):
        async with aclosing(contents(log, [record.version for record in records])) as files:
            ratified = iter(records)
            async for version, found in files:
                sha256 = next(ratified).content_sha256
                if found is None or sha256 is None:
                    continue
                if (other := await offload.sha256_of(found)) != sha256:
                    return version, other
        last = records[-1].version - 1
    return None


async def why_differing(section: CommitSection, version: int, sha256: str) -> str | None:
    """Why the log is not the table's, where its file of a version has this SHA-256. None where the
    index has the same by now, as after it was made anew or in another database."""
    if not section.table.first_version <= version <= section.table.published_version:
        return None
    ratified, _ = await section.kept(version)
    return None if ratified in (None, sha256) else f"{_differs(version)}: {NOT_OWN}"


def without_base(table: TableHead, commits: Collection[int], base: int) -> str | None:
    """Why a log with these commits, whose newest checkpoint is of `base` (-1 for none), does not
    lead to the first version that the index holds; None where it does."""
    before = range(base + 1, table.first_version)
    missing = next((version for version in before if version not in commits), None)
    if missing is None:
        return None
    return (
        f"the log has neither version {missing} nor a checkpoint of version {table.first_version} "
        "or later, and the index begins there"
    )


async def _still_broken(section: CommitSection, log: Log) -> str | None:
    table = section.table
    if table.published_version < 0:
        return None
    await section.take_time()
    try:
        files = await listed(log, between=section.take_time)
    except BrokenLog as error:
        raise Refused(
            f"the log of table {table.name} cannot be read: {error}", code=Code.BROKEN_LOG
        ) from error
    commits, base = await offload.run(len(files), versions_left, files)
    if (why := without_base(table, commits, base)) is not None:
        return why
    published = range(table.first_version, table.published_version + 1)
    missing = [version for version in published if version > base and version not in commits]
    if not missing:
        return None
    left = [version for version in published if version in commits]
    if not left and base < 0:
        return f"versions {missing[0]} to {missing[-1]} were published, and none is in the log"
    why = await other_bytes(section, log, left, cleaned_up=base)
    if why is None and max(left, default=-1) <= base:
        why = await checkpoint_of_another(section, log, files.checkpoints()[base])
    why = why or await _unkept(section, missing)
    if why is not None:
        return why
    for number, version in enumerate(missing):
        if number % VERSIONS_AT_ONCE == 0:
            await section.take_time()
        content = await section.stored_content(version)
        assert content is not None, "it was there before"
        found = await _put(log, version, content)
        if found is not None and not await offload.is_same(content, found):
            return _differs(version)
    logger.warning(
        "published versions were gone from the log and were put back",
        extra={"table": table.name, "versions": missing},
    )
    return None


async def other_bytes(
    section: CommitSection, log: Log, versions: Sequence[int], *, cleaned_up: int = -1
) -> str | None:
    """Why one of these versions, which lie in the log, is not as it was ratified; None where all
    are. A clean-up may delete those up to `cleaned_up` meanwhile."""
    async with aclosing(contents(log, versions)) as files:
        number = 0
        async for version, found in files:
            if number % VERSIONS_AT_ONCE == 0:
                await section.take_time()
            number += 1
            if found is None and version <= cleaned_up:
                continue
            sha256, _ = await section.kept(version)
            if found is None or sha256 not in (None, await offload.sha256_of(found)):
                return _differs(version)
    return None


async def _unkept(section: CommitSection, versions: Sequence[int]) -> str | None:
    """Why the bytes of one of these versions cannot be taken from the index; None where all can."""
    for number, version in enumerate(versions):
        if number % VERSIONS_AT_ONCE == 0:
            await section.take_time()
        content = await section.stored_content(version)
        sha256, _ = await section.kept(version)
        if content is None or await offload.sha256_of(content) != sha256:
            return (
                f"version {version} was published and is not in the log, and the index does not "
                "have its bytes"
            )
    return None


async def _put(log: Log, version: int, content: Content) -> bytes | LogFile | None:
    """Write the version, unless it is there. None where this call wrote it; else the log's file."""
    try:
        if await log.put_if_absent(version, content) is PutResult.CREATED:
            return None
    except StorageUnknown:
        pass
    found = await log.read(version)
    if found is None:
        raise StorageUnavailable(
            f"the object store did not say whether version {version} was written"
        )
    return found


def _differs(version: int) -> str:
    return f"version {version} lies in the log with other bytes than were ratified"
