"""Ending a quarantine once its cause is gone."""

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from functools import partial

from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.content import LogFile
from tidegate_protocol.log.segment import BrokenLog
from tidegate_protocol.replay.commits import UnreadableCommit
from tidegate_service.core.access.audit import Change, Deed
from tidegate_service.core.catalog_managed.findings import strange, unlike
from tidegate_service.core.catalog_managed.set_back import lost, quarantine_for
from tidegate_service.core.context import Context
from tidegate_service.core.errors import Refused, Unavailable
from tidegate_service.core.log.catching_up.catch_up import read_on
from tidegate_service.core.log.catching_up.sight import Behind, SeenBefore
from tidegate_service.core.log.catching_up.versions import contents
from tidegate_service.core.log.used_places import late_write
from tidegate_service.core.maintenance.in_turn import in_turn
from tidegate_service.core.maintenance.truncation import Tail
from tidegate_service.core.ports.index import CommitSection
from tidegate_service.core.ports.records import TableHead, TableRecord, TableState
from tidegate_service.core.sharing import offload
from tidegate_service.core.tables.lookup import find_head, get_table

_Check = Callable[[CommitSection, SeenBefore], Awaitable[None]]
"""Raises what `release_table` does where the table cannot go on, and `Behind`; a kind of table has
its own."""


async def release_table(context: Context, ref: str) -> TableRecord:
    """The table's head, which takes commits again. A table that is not quarantined is left as
    it is.

    Raises `Refused` (`broken-log`) where the log still holds what the index cannot go on from, and
    where the database was set back, which a rebuild alone makes good.
    """
    table = await find_head(context, ref)
    work = partial(_release, context, table.id)
    return await in_turn(context, context.releasing, ("release", table.id), work)


async def _release(context: Context, table_id: str) -> TableRecord:
    table = await get_table(context, table_id)
    if table.state is not TableState.QUARANTINED:
        return table
    check = await _looked(context, table) if table.catalog_managed else _check_plain
    sight = SeenBefore()
    until = context.monotonic_s() + context.long_deadline_s
    while True:
        try:
            return await _section(context, table, check, sight)
        except Behind:
            try:
                await read_on(context, table.id, sight, until=until, state=TableState.QUARANTINED)
            except UnreadableCommit as error:
                raise _still_broken(table, str(error)) from None


async def _section(
    context: Context, table: TableHead, check: _Check, sight: SeenBefore
) -> TableRecord:
    async with context.index.commit_section(table.id, who=context.who) as section:
        head = section.table
        if head.state is not TableState.QUARANTINED:
            return head
        await check(section, sight)
        await section.release()
        version = section.table.latest_version
        await section.record_change(Change(deed=Deed.RELEASE, by=context.caller, version=version))
        await section.save()
        return section.table


async def _looked(context: Context, table: TableHead) -> _Check:
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
            found = await unlike(section, *other)
        if found is not None:
            await quarantine_for(section, found)
            raise _still_broken(head, found.reason)

    return check


async def _other(context: Context, table: TableHead) -> tuple[int, bytes | LogFile] | None:
    """The first file that lies in the log beyond what is published, as whatever version, and is not
    what is to be published. Nobody commits to the table, so no lock is needed to see that."""
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


async def _check_plain(section: CommitSection, sight: SeenBefore) -> None:
    head = section.table.latest_version
    try:
        sha256, absent = await sight.see(section, Tail(head))
    except BrokenLog as error:
        raise _still_broken(section.table, f"the log cannot be read: {error}") from error
    if sha256 is None:
        raise _still_broken(
            section.table,
            f"version {head} is not in the log; put its file back, or rebuild the table where a "
            "checkpoint has taken its place",
        )
    if await section.head_sha256() not in (None, sha256):
        raise _still_broken(
            section.table,
            f"version {head} in the log is not the one that was committed; put its file back, or "
            "rebuild the table where the log was made again",
        )
    if not sight.has_end(section):
        raise Behind
    if absent is not None:
        raise _still_broken(section.table, await late_write(section, sight) or _gap(absent))


def _gap(version: int) -> str:
    return (
        f"version {version} is missing from the log, and there are later ones: put its file back, "
        "move the later ones away, or rebuild the table where a checkpoint has taken its place"
    )


def _still_broken(table: TableHead, why: str) -> Refused:
    return Refused(f"table {table.name} stays quarantined: {why}", code=Code.BROKEN_LOG)
