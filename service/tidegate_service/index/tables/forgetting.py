"""Forgetting a table: one transaction under the row's lock, of many short statements. What its log
can not be relied on to tell again is kept (`core.ports.forgotten`).

Everybody else sees all of the table until it commits, and nothing of it afterwards; one that is
cut off has changed nothing. A single statement would have no time for millions of rows.
"""

from uuid import UUID

from sqlalchemy import delete, func, select

from tidegate_service.core.access.audit import Change, Deed
from tidegate_service.core.access.roles import Caller
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.index.access import audit
from tidegate_service.index.limits import IndexLimits
from tidegate_service.index.schema.checkpoints import (
    checkpoint_sidecars,
    removed_domains,
    tombstones,
)
from tidegate_service.index.schema.tables import (
    aborted_transactions,
    app_transactions,
    domain_metadata,
    files,
    metadata_versions,
    past_commits,
    tables,
)
from tidegate_service.index.tables import forgotten
from tidegate_service.index.tables.long_transactions import Statement
from tidegate_service.index.tables.rebuilding import drop_commits

# What refers to commits goes before them, and they before their table.
_SMALL = (
    app_transactions,
    domain_metadata,
    removed_domains,
    metadata_versions,
    aborted_transactions,
    past_commits,
    tombstones,
    checkpoint_sidecars,
)


async def forget(
    statement: Statement, table: TableRecord, *, by: Caller, limits: IndexLimits
) -> bool:
    """Drop a locked table; False, with nothing done, where a version of it is not published."""
    if table.published_version < table.latest_version:
        return False
    table_id = UUID(table.id)
    await _keep(statement, table, table_id, by, limits.forgotten_commits)
    await _drop_files(statement, table_id, limits.forgotten_files)
    for dependent in _SMALL:
        async with statement() as connection:
            await connection.execute(delete(dependent).where(dependent.c.table_id == table_id))
    after = table.latest_version
    while after >= table.first_version:
        # The newest first: each is referred to by the one that follows it.
        after -= limits.forgotten_commits
        async with statement() as connection:
            await drop_commits(connection, table_id, after=after)
    async with statement() as connection:
        await connection.execute(delete(tables).where(tables.c.id == table_id))
    return True


async def _keep(
    statement: Statement, table: TableRecord, table_id: UUID, by: Caller, commits_at_once: int
) -> None:
    async with statement() as connection:
        await forgotten.keep_head(connection, table)
    for keep in (forgotten.keep_past_commits, forgotten.keep_aborts):
        async with statement() as connection:
            await keep(connection, table_id)
    async with statement() as connection:
        await audit.keep_past_commits(connection, table_id, table.name)
    for first in range(table.first_version, table.latest_version + 1, commits_at_once):
        async with statement() as connection:
            last = first + commits_at_once - 1
            await audit.keep_commits(connection, table_id, table.name, first=first, last=last)
        async with statement() as connection:
            await forgotten.keep_commits(connection, table_id, first=first, last=last)
    gone = Change(deed=Deed.FORGET, by=by, version=table.latest_version)
    async with statement() as connection:
        await audit.record_change(connection, gone, table_id=table_id, table_name=table.name)


async def _drop_files(statement: Statement, table_id: UUID, files_at_once: int) -> None:
    """Path after path, so that no slice walks over the rows of the ones before it."""
    after: str | None = None
    while True:
        of_slice = files.c.table_id == table_id
        if after is not None:
            of_slice &= files.c.path > after
        paths = (
            select(files.c.path).where(of_slice).order_by(files.c.path).limit(files_at_once)
        ).subquery()
        async with statement() as connection:
            last = (await connection.execute(select(func.max(paths.c.path)))).scalar_one()
        if last is None:
            return
        async with statement() as connection:
            await connection.execute(delete(files).where(of_slice, files.c.path <= last))
        after = last
