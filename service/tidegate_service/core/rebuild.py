"""Making a table's index anew from its log (reliability, I13).

The log is what a plain table is; of a catalog-managed one it is all but the versions that are
not published, whose bytes the index holds. Both are read into the emptied index in one commit
section, so that nobody ever sees a table half made, and what cannot be read changes nothing.
"""

import hashlib
from dataclasses import replace

from tidegate_protocol.commits import UnreadableCommit
from tidegate_protocol.problems import Code
from tidegate_service.core.adopt import adopt
from tidegate_service.core.audit import Change, Deed
from tidegate_service.core.context import Context
from tidegate_service.core.data_paths import DataPaths
from tidegate_service.core.errors import Refused
from tidegate_service.core.ingest import append_foreign, foreign_commit
from tidegate_service.core.ports import CommitSection, Log
from tidegate_service.core.records import TableRecord
from tidegate_service.core.tables import get_table


async def rebuild_table(context: Context, ref: str) -> TableRecord:
    """The table's head after it.

    Raises `Refused`: what `register` does for a log that cannot be read, and `broken-log` for
    one that ends before the index does, since versions that were answered for would be lost.
    """
    table = await get_table(context, ref)
    return await context.sections.run((table.id, "rebuild"), _rebuild(context, table.id))


async def _rebuild(context: Context, table_id: str) -> TableRecord:
    async with context.index.commit_section(table_id) as section:
        await rebuild_in(context, section)
        await section.save()
        return section.table


async def rebuild_in(context: Context, section: CommitSection) -> None:
    """The same inside a section, which the caller saves."""
    before = section.table
    held = await section.held() if before.catalog_managed else ()
    await section.reset()
    log = context.storage.log(before.location)
    if before.published_version >= 0:
        paths = DataPaths(location=before.location, policy=context.locations)
        # Nothing that others put behind a catalog-managed table's published versions is one.
        through = before.published_version if before.catalog_managed else None
        await adopt(section, log, paths, through=through)
    if section.table.latest_version < before.published_version:
        raise Refused(
            f"the log of table {before.name} ends at version {section.table.latest_version}, and "
            f"the index knows versions up to {before.published_version} that were in it: the rest "
            "of the log is lost",
            code=Code.BROKEN_LOG,
            hint="put the missing files back (GET /tables/{table}/verify names them), or forget "
            "the table and register it again if they are lost for good",
        )
    if before.catalog_managed and (other := await section.rewritten()) is not None:
        # Of a plain table the log is the truth, whatever was put into it since.
        raise Refused(
            f"version {other} of table {before.name} lies in the log with other bytes than were "
            "ratified",
            code=Code.BROKEN_LOG,
            hint=f"put the ratified file back: GET /tables/{before.name}/verify gives its SHA-256",
        )
    for version, content in held:
        await _append_held(section, log, version, content)
    await section.restore_ids()
    version = section.table.latest_version
    await section.note(Change(deed=Deed.REBUILD, by=context.caller, version=version))


async def _append_held(section: CommitSection, log: Log, version: int, content: bytes) -> None:
    table = section.table
    stored = await log.read(version)
    if stored is not None and stored != content:
        raise Refused(
            f"version {version} of table {table.name} lies in the log with other bytes than "
            f"were ratified: expected SHA-256 {_sha256(content)}, found {_sha256(stored)}",
            code=Code.BROKEN_LOG,
        )
    try:
        commit = await foreign_commit(section, version, content)
    except UnreadableCommit as error:
        raise Refused(
            f"version {version} of table {table.name}, which only the index holds, cannot be "
            f"read: {error}",
            code=Code.BROKEN_LOG,
        ) from None
    # A publisher may have had no time left to say that it published.
    published = stored is not None and table.published_version == table.latest_version
    await append_foreign(section, replace(commit, published=published))


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
