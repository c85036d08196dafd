"""The files that are live at a version. Each query is one statement; what is live at a version that
exists never changes."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, FromClause, Select, or_, select, true, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.actions import Add, PartitionValues
from tidegate_protocol.proposal.transaction import BYTES_AN_ACTION
from tidegate_service.core.errors import IndexUnavailable, NotFound
from tidegate_service.core.sharing import offload
from tidegate_service.index.limits import IndexLimits
from tidegate_service.index.rows.effects import FileKey
from tidegate_service.index.rows.pages import bounded, bytes_of
from tidegate_service.index.rows.records import add_of
from tidegate_service.index.schema.tables import files, tables

FEW_ROWS = 100
"""Of a path, that are looked through."""


class FilesPage(NamedTuple):
    """A batch of files, the key of the last one, and whether there are none behind it."""

    files: Sequence[Add]
    last: FileKey
    is_last: bool


async def partition_values(
    connection: AsyncConnection, table_id: UUID, file: FileKey, version: int
) -> PartitionValues | None:
    path, dv_id = file
    removed = files.c.removed_version
    # A path may have any number of rows, of one vector or of many. Lives of one file do not
    # overlap: the first that ended after the version is the one that it can be.
    closed = (
        select(files.c.added_version, removed, files.c.action)
        .where(
            files.c.table_id == table_id,
            files.c.path == path,
            files.c.dv_id == dv_id,
            removed > version,
        )
        .order_by(removed)
        .limit(1)
    )
    some = (
        select(files.c.added_version, removed, files.c.action)
        .where(files.c.table_id == table_id, files.c.path == path)
        .limit(FEW_ROWS)
    )
    for rows in (closed.subquery(), some.subquery()):
        query = select(rows.c.action).where(_live_at(version, rows)).limit(1)
        raw = (await connection.execute(query)).scalar_one_or_none()
        if raw is not None:
            return add_of(raw).partition_values
    return None


async def files_page(
    connection: AsyncConnection,
    table_id: UUID,
    version: int,
    *,
    after: FileKey,
    limit: int,
    limits: IndexLimits,
) -> FilesPage | None:
    """The next files live at a version in the order of their keys, as many as `limit` and `limits`
    allow; None where the table is gone: an empty page would say that the snapshot ends here. Raises
    `NotFound` where the index does not reach back to the version any more."""
    query = files_page_query(table_id, version, after=after, limit=limit, limits=limits)
    rows = (await connection.execute(query)).all()
    if not rows:
        return None
    if version < rows[0].first_version:
        # Made anew since, from a log that reaches back no further.
        raise NotFound(
            f"version {version} of the table is not held any more; the first one is "
            f"{rows[0].first_version}",
            code=Code.VERSION_NOT_FOUND,
        )
    if version > rows[0].latest_version:
        raise IndexUnavailable("the database failed over since the version was asked for")
    found = [row for row in rows if row.action is not None]
    last = (found[-1].path, found[-1].dv_id) if found else after
    actions = [row.action for row in found]
    size = sum(map(len, actions))
    weight = max(len(actions), size // BYTES_AN_ACTION)
    adds = await offload.run(weight, _adds_of, actions)
    return FilesPage(adds, last, is_last=len(actions) < limit and size < limits.file_page_bytes)


def _adds_of(actions: Sequence[bytes]) -> list[Add]:
    return [add_of(action) for action in actions]


def files_page_query(
    table_id: UUID, version: int, *, after: FileKey, limit: int, limits: IndexLimits
) -> Select[tuple[int, int, str, str, bytes]]:
    path, dv_id = files.c.path, files.c.dv_id
    wanted = (
        select(path, dv_id, files.c.action)
        .where(
            files.c.table_id == table_id,
            tuple_(path, dv_id) > tuple_(*after),
            _live_at(version),
        )
        .order_by(path, dv_id)
        .limit(limit)
    )
    page = bounded(
        wanted,
        size=bytes_of(files.c.action),
        order=lambda columns: tuple_(columns.path, columns.dv_id),
        most=limits.file_page_bytes,
    ).lateral()
    return (
        select(
            tables.c.first_version,
            tables.c.latest_version,
            page.c.path,
            page.c.dv_id,
            page.c.action,
        )
        .select_from(tables)
        .outerjoin(page, true())
        .where(tables.c.id == table_id)
        .order_by(page.c.path, page.c.dv_id)
    )


def _live_at(version: int, rows: FromClause = files) -> ColumnElement[bool]:
    removed = rows.c.removed_version
    return (rows.c.added_version <= version) & or_(removed.is_(None), removed > version)
