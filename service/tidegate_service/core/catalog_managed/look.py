"""A look at the log of a catalog-managed table before the first version is put there: is it the
table's own?"""

import asyncio
from collections.abc import Awaitable, Callable

from tidegate_protocol.log.segment import BrokenLog
from tidegate_service.core.catalog_managed.findings import strange
from tidegate_service.core.catalog_managed.questions import Ends, Hole, is_begun
from tidegate_service.core.catalog_managed.set_back import quarantine_for
from tidegate_service.core.errors import IndexUnavailable, StorageUnavailable
from tidegate_service.core.instance.own_logs import OwnLogs
from tidegate_service.core.log.catching_up.sight import Behind, Between, SeenBefore
from tidegate_service.core.ports.index import CommitSection, Index
from tidegate_service.core.ports.records import TableHead
from tidegate_service.core.ports.store.storage import Log
from tidegate_service.core.sharing import offload

PAGE_S = 30.0
"""How long a store is waited for, for each page of a listing and each answer."""
QUICK_LOOK_S = 2.0
"""What nearly all looks take less than."""
LONG_LOOK_S = 600.0
"""A log may have a million names, and a store may take half a second for a thousand of them."""


class Unseen(Exception):
    """Nobody has seen yet whether the log is the table's own, which is published to `version` in
    `database`. `look` is to be called before anything is put there."""

    def __init__(self, version: int, database: str) -> None:
        super().__init__(version)
        self.version = version
        self.database = database


class NotSeenInTime(StorageUnavailable):
    """The store did not show the log within the time that there was for it."""


class WentOn(StorageUnavailable):
    """Another instance published meanwhile, so what was seen is of no use."""


async def look(
    index: Index,
    log: Log,
    table: TableHead,
    unseen: Unseen,
    *,
    own: OwnLogs,
    within_s: float = LONG_LOOK_S,
    page_s: float = PAGE_S,
) -> bool:
    """Whether the log is the table's, which `own` then remembers. False where the table was
    forgotten, or the log is not its own: then the table is quarantined. Raises `NotSeenInTime`,
    `WentOn`, `StorageUnavailable` and `IndexUnavailable`."""
    try:
        async with asyncio.timeout(within_s):
            is_own = await _is_own(index, log, table, unseen, page_s)
    except TimeoutError:
        raise not_seen_within(within_s) from None
    if is_own:
        own.remember(table.id, unseen.version, database=unseen.database)
    return is_own


def check_database(section: CommitSection, database: str) -> None:
    """Raise `IndexUnavailable` where the section is in another database than the versions were read
    from: a difference from one database is no reason to quarantine the table in another."""
    if section.database != database:
        raise IndexUnavailable(
            f"what waits of table {section.table.name} was read from another database than the one "
            "that is there now; it is looked at again"
        )


async def _is_own(index: Index, log: Log, table: TableHead, unseen: Unseen, page_s: float) -> bool:
    """No lock is needed to see that the log has the last published version, or nothing where none
    was published."""
    published = unseen.version
    if published < 0 and not await _in_pages(page_s, lambda between: is_begun(log, between)):
        return True
    version = max(published, 0)
    known, last = await index.commit(table.id, version), await log.read(version)
    if known is None:
        # The table was forgotten.
        return False
    is_last = last is not None and known.content_sha256 in (None, await offload.sha256_of(last))
    if is_last and not await _in_pages(page_s, lambda between: _is_cut(log, version, between)):
        return True
    sight = SeenBefore()
    while True:
        try:
            async with index.commit_section(table.id) as section:
                check_database(section, unseen.database)
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
            if glance.table.published_version > published:
                raise WentOn("another instance published to the log meanwhile") from None
            await sight.ask(glance, log, within_s=page_s)


async def _in_pages(page_s: float, question: Callable[[Between], Awaitable[bool]]) -> bool:
    """The log's answer, which may take so long for each of its pages. Raises `NotSeenInTime`."""
    now = asyncio.get_running_loop().time

    async def goes_on() -> None:
        deadline.reschedule(now() + page_s)

    try:
        async with asyncio.timeout(page_s) as deadline:
            return await question(goes_on)
    except TimeoutError:
        raise not_seen_within(page_s) from None


def not_seen_within(seconds: float) -> NotSeenInTime:
    return NotSeenInTime(f"the log could not be looked through within {seconds:g} s")


async def _is_cut(log: Log, version: int, between: Between) -> bool:
    """Whether a clean-up may have cut the log behind a version."""
    try:
        return await Hole(version).ask(log, between)
    except BrokenLog:
        return True
