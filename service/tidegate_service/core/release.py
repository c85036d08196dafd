"""Ending a quarantine once its cause is gone."""

import hashlib

from tidegate_protocol.commits import UnreadableCommit
from tidegate_protocol.problems import Code
from tidegate_service.core.audit import Change, Deed
from tidegate_service.core.context import Context
from tidegate_service.core.errors import Refused
from tidegate_service.core.ingest import append_foreign, foreign_commit
from tidegate_service.core.ports import CommitSection, Log
from tidegate_service.core.records import TableRecord, TableState
from tidegate_service.core.tables import get_table


async def release_table(context: Context, ref: str) -> TableRecord:
    """The table's head, which takes commits again. A table that is not quarantined is left as
    it is.

    Raises `Refused` (`broken-log`) where the log still holds what the index cannot go on from.
    """
    table = await get_table(context, ref)
    return await context.sections.run((table.id, "release"), _release(context, table.id))


async def _release(context: Context, table_id: str) -> TableRecord:
    async with context.index.commit_section(table_id) as section:
        if section.table.state is not TableState.QUARANTINED:
            return section.table
        log = context.storage.log(section.table.location)
        await section.release()
        if section.table.catalog_managed:
            await _check_published(section, log)
        else:
            await _take_in(section, log)
        version = section.table.latest_version
        await section.note(Change(deed=Deed.RELEASE, by=context.caller, version=version))
        await section.save()
        return section.table


async def _check_published(section: CommitSection, log: Log) -> None:
    """Whatever lies in the log beyond what is published must be what is to be published."""
    for version, content in await section.held():
        stored = await log.read(version)
        if stored is not None and stored != content:
            raise _still_broken(
                section.table,
                f"the file of version {version} is not what was ratified; move it away, and it "
                "will be published",
            )
    beyond = section.table.latest_version + 1
    if await log.read(beyond) is not None:
        raise _still_broken(
            section.table, f"the log has a version {beyond}, which was never ratified"
        )


async def _take_in(section: CommitSection, log: Log) -> None:
    head = section.table.latest_version
    stored = await log.read(head)
    if stored is None:
        raise _still_broken(
            section.table,
            f"version {head} is not in the log; put its file back, or rebuild the table where a "
            "checkpoint has taken its place",
        )
    if await section.head_sha256() not in (None, hashlib.sha256(stored).hexdigest()):
        raise _still_broken(
            section.table,
            f"version {head} in the log is not the one that was committed; put its file back, or "
            "rebuild the table where the log was made again",
        )
    while (content := await log.read(section.table.latest_version + 1)) is not None:
        version = section.table.latest_version + 1
        try:
            await append_foreign(section, await foreign_commit(section, version, content))
        except UnreadableCommit as error:
            raise _still_broken(section.table, f"version {version}: {error}") from None


def _still_broken(table: TableRecord, why: str) -> Refused:
    return Refused(f"table {table.name} stays quarantined: {why}", code=Code.BROKEN_LOG)
