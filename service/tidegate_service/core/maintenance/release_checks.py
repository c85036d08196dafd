"""Whether the cause of a table's quarantine is gone, as each kind of table has it."""

from collections.abc import Awaitable, Callable
from contextlib import aclosing

from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.content import LogFile
from tidegate_protocol.log.segment import BrokenLog
from tidegate_service.core.catalog_managed.findings import strange, unlike
from tidegate_service.core.catalog_managed.set_back import lost, quarantine_for
from tidegate_service.core.context import Context
from tidegate_service.core.errors import Refused, Unavailable
from tidegate_service.core.log.catching_up.sight import Behind, SeenBefore
from tidegate_service.core.log.catching_up.tail import Tail
from tidegate_service.core.log.catching_up.versions import contents
from tidegate_service.core.log.used_places import late_write
from tidegate_service.core.maintenance.truncation import WAY_OUT, ends_of, not_own
from tidegate_service.core.ports.index import CommitSection
from tidegate_service.core.ports.records import TableHead
from tidegate_service.core.sharing import offload

Check = Callable[[CommitSection, SeenBefore], Awaitable[None]]
"""Raises what `release_table` does where the table cannot go on, and `Behind`."""


async def catalog_managed_check(context: Context, table: TableHead) -> Check:
    """What is seen of a catalog-managed table's log without its lock, to be checked under it."""
    log = context.storage.log(table.location, who=context.who)
    last = await log.read(max(table.published_version, 0))
    other = await _other(context, table)

    async def check(section: CommitSection, sight: SeenBefore) -> None:
        head = section.table
        if _place(head) != _place(table):
            raise Unavailable(f"table {head.name} was changed meanwhile; ask again")
        found = await lost(context, section) or await strange(section, sight, last)
        if found is None and other is not None:
            found = await unlike(section, sight, *other)
        if found is not None:
            await quarantine_for(section, found)
            raise still_broken(head, found.reason)

    return check


async def _other(context: Context, table: TableHead) -> tuple[int, bytes | LogFile] | None:
    """The first version behind the published ones whose file in the log has other bytes than are to
    be published, and the file. Nobody commits to the table, so no lock is needed to see it."""
    log = context.storage.log(table.location, who=context.who)
    unpublished = range(table.published_version + 1, table.latest_version + 2)
    async with aclosing(contents(log, unpublished)) as files:
        async for version, stored in files:
            if stored is None:
                continue
            ratified = await context.index.commit(table.id, version)
            if ratified is None or ratified.content_sha256 != await offload.sha256_of(stored):
                return version, stored
    return None


def _place(head: TableHead) -> tuple[int, int, int]:
    return head.epoch, head.latest_version, head.published_version


async def plain_check(context: Context, table: TableHead) -> Check:
    """What is checked of a plain table under its lock. The section is left for what it asks."""
    return _check_plain


async def _check_plain(section: CommitSection, sight: SeenBefore) -> None:
    head = section.table.latest_version
    try:
        found = await sight.see(section, Tail.of(section.table))
    except BrokenLog as error:
        raise still_broken(section.table, f"the log cannot be read: {error}") from error
    other = await not_own(section, found.files)
    if other is not None:
        raise still_broken(section.table, other)
    if found.files[head] is None:
        raise still_broken(
            section.table,
            f"version {head} is not in the log; put its file back, or rebuild the table where a "
            "checkpoint has taken its place",
        )
    if found.goes_on:
        # Between the two versions files may be missing: only some may have been put back.
        ends = await ends_of(section, sight, goes_on=True)
        if isinstance(ends, str):
            raise still_broken(section.table, ends)
        if not ends.files:
            raise still_broken(
                section.table,
                f"its log can be read from a version behind {head} only; rebuild it, or where "
                f"others have made another table in the folder, {WAY_OUT}",
            )
    if not sight.has_end(section):
        raise Behind
    if found.absent is not None:
        raise still_broken(section.table, await late_write(section, sight) or _gap(found.absent))


def _gap(version: int) -> str:
    return (
        f"version {version} is missing from the log, and there are later ones: put its file back, "
        "or rebuild the table where a checkpoint has taken its place. Only where that file is lost "
        "for good are the later ones lost, too: move their files out of the log"
    )


def still_broken(table: TableHead, why: str) -> Refused:
    """The refusal to end the quarantine of a table."""
    return Refused(f"table {table.name} stays quarantined: {why}", code=Code.BROKEN_LOG)
