"""The index's queries. Each is one statement, so it sees one state of the database."""

import asyncio
from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Select,
    String,
    collate,
    func,
    literal,
    or_,
    select,
    true,
    tuple_,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_protocol.actions import Add, PartitionValues, Txn
from tidegate_protocol.problems import Code
from tidegate_protocol.row_tracking import DOMAIN, NO_ROW_IDS, high_water_mark
from tidegate_protocol.transaction import ReadState, Winner
from tidegate_service.core.errors import NotFound
from tidegate_service.core.records import Aborted, CommitRecord, TableRecord
from tidegate_service.index.base import take_time
from tidegate_service.index.effects import FileKey
from tidegate_service.index.keys import key
from tidegate_service.index.large_winners import LARGE_BYTES, large_winner
from tidegate_service.index.rows import (
    COMMIT_COLUMNS,
    RECORD_COLUMNS,
    add_of,
    commit_record,
    domain_of,
    expanded,
    read_state,
    table_record,
    txn_of,
    winner,
)
from tidegate_service.index.schema import (
    aborted_transactions,
    app_transactions,
    commits,
    domain_metadata,
    files,
    metadata_versions,
    past_commits,
    tables,
)

FilesPage = tuple[list[Add], FileKey]
"""A batch of files and the key of the last one."""


def table_id_of(ref: str) -> UUID | None:
    """The id that a reference is; None where it can only be a name."""
    try:
        return UUID(ref)
    except ValueError:
        return None


def lower(name: str) -> ColumnElement[str]:
    # The same collation as the column's index, so the same notion of case.
    return func.lower(collate(literal(name, String), "C"))


async def table(connection: AsyncConnection, ref: str) -> TableRecord | None:
    if "\0" in ref:
        return None  # Postgres would refuse the question.
    table_id = table_id_of(ref)
    is_it = func.lower(tables.c.name) == lower(ref) if table_id is None else tables.c.id == table_id
    row = (await connection.execute(select(tables).where(is_it))).one_or_none()
    return None if row is None else table_record(row)


async def tables_page(
    connection: AsyncConnection,
    *,
    prefix: str,
    after: str | None,
    limit: int,
    within: Sequence[str] | None = None,
) -> list[TableRecord]:
    name = func.lower(tables.c.name)
    query = select(tables).where(func.starts_with(name, lower(prefix))).order_by(name).limit(limit)
    if after is not None:
        query = query.where(name > lower(after))
    if within is not None:
        inside = (func.starts_with(name, lower(f"{scope}.")) for scope in within)
        query = query.where(or_(name.in_(list(within)), *inside))
    return [table_record(row) for row in await connection.execute(query)]


async def transaction(
    connection: AsyncConnection, table_id: UUID, transaction_id: str
) -> CommitRecord | Aborted | None:
    for source in (commits, past_commits):
        landed = select(*(source.c[name] for name in RECORD_COLUMNS)).where(
            source.c.table_id == table_id, source.c.transaction_id == key(transaction_id)
        )
        row = (await connection.execute(landed)).one_or_none()
        if row is not None:
            return commit_record(row)
    tombstone = select(aborted_transactions.c.unfenced_after).where(
        aborted_transactions.c.table_id == table_id,
        aborted_transactions.c.transaction_id == key(transaction_id),
    )
    row = (await connection.execute(tombstone)).one_or_none()
    return None if row is None else Aborted(transaction_id, row.unfenced_after)


async def history(
    connection: AsyncConnection,
    table_id: UUID,
    *,
    from_version: int | None,
    to_version: int | None,
    limit: int,
) -> list[CommitRecord]:
    query = (
        select(*COMMIT_COLUMNS)
        .where(commits.c.table_id == table_id)
        .order_by(commits.c.version.desc())
        .limit(limit)
    )
    if from_version is not None:
        query = query.where(commits.c.version >= from_version)
    if to_version is not None:
        query = query.where(commits.c.version <= to_version)
    return [commit_record(row) for row in await connection.execute(query)]


async def content(connection: AsyncConnection, table_id: UUID, version: int) -> bytes | None:
    query = select(commits.c.content).where(
        commits.c.table_id == table_id, commits.c.version == version, commits.c.content_held
    )
    stored = (await connection.execute(query)).scalar_one_or_none()
    if stored is None or len(stored) <= LARGE_BYTES:
        return None if stored is None else expanded(stored)
    return await asyncio.to_thread(expanded, stored)


async def content_sha256(connection: AsyncConnection, table_id: UUID, version: int) -> str | None:
    query = select(commits.c.content_sha256).where(
        commits.c.table_id == table_id, commits.c.version == version
    )
    found: str | None = (await connection.execute(query)).scalar_one()
    return found


async def state_at(connection: AsyncConnection, table_id: UUID, version: int) -> ReadState | None:
    if version == -1:
        return ReadState(version=-1, protocol=None, metadata=None)
    # The latest change at or before a version that exists.
    query = (
        select(metadata_versions)
        .join(
            commits,
            (commits.c.table_id == metadata_versions.c.table_id) & (commits.c.version == version),
        )
        .where(metadata_versions.c.table_id == table_id, metadata_versions.c.version <= version)
        .order_by(metadata_versions.c.version.desc())
        .limit(1)
    )
    row = (await connection.execute(query)).one_or_none()
    return None if row is None else read_state(version, row)


async def row_id_high_water_mark(connection: AsyncConnection, table_id: UUID) -> int:
    query = select(domain_metadata.c.action).where(
        domain_metadata.c.table_id == table_id, domain_metadata.c.domain == key(DOMAIN)
    )
    raw = (await connection.execute(query)).scalar_one_or_none()
    return NO_ROW_IDS if raw is None else high_water_mark(domain_of(raw))


async def winners(
    connection: AsyncConnection, table_id: UUID, *, after: int, through: int
) -> Sequence[Winner] | None:
    query = (
        select(commits.c.version, commits.c.timestamp, commits.c.content)
        .where(
            commits.c.table_id == table_id, commits.c.version > after, commits.c.version <= through
        )
        .order_by(commits.c.version)
    )
    rows = (await connection.execute(query)).all()
    if any(len(row.content) > LARGE_BYTES for row in rows):
        await take_time(connection)
    found = [
        winner(row)
        if len(row.content) <= LARGE_BYTES
        else await asyncio.to_thread(large_winner, row.version, row.timestamp, row.content)
        for row in rows
    ]
    return found if len(found) == max(0, through - after) else None


async def version_at(connection: AsyncConnection, table_id: UUID, timestamp_ms: int) -> int | None:
    query = (
        select(commits.c.version)
        .where(commits.c.table_id == table_id, commits.c.timestamp <= timestamp_ms)
        .order_by(commits.c.version.desc())
        .limit(1)
    )
    return (await connection.execute(query)).scalar_one_or_none()


async def partition_values(
    connection: AsyncConnection, table_id: UUID, path: str, version: int
) -> PartitionValues | None:
    query = (
        select(files.c.action)
        .where(files.c.table_id == table_id, files.c.path == key(path), _live_at(version))
        .limit(1)
    )
    raw = (await connection.execute(query)).scalar_one_or_none()
    return None if raw is None else add_of(raw).partition_values


async def files_page(
    connection: AsyncConnection, table_id: UUID, version: int, *, after: FileKey, limit: int
) -> FilesPage | None:
    """The next files live at a version in the order of their keys; None where the
    table is gone: an empty page would say that the snapshot ends here. Raises `NotFound` where the
    index does not reach back to the version any more."""
    query = files_page_query(table_id, version, after=after, limit=limit)
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
    found = [row for row in rows if row.action is not None]
    last = (found[-1].path, found[-1].dv_id) if found else after
    return [add_of(row.action) for row in found], last


def files_page_query(
    table_id: UUID, version: int, *, after: FileKey, limit: int
) -> Select[tuple[int, str, str, bytes]]:
    path, dv_id = files.c.path, files.c.dv_id
    page = (
        select(path, dv_id, files.c.action)
        .where(
            files.c.table_id == table_id,
            tuple_(path, dv_id) > tuple_(*after),
            _live_at(version),
        )
        .order_by(path, dv_id)
        .limit(limit)
        .lateral()
    )
    return (
        select(tables.c.first_version, page.c.path, page.c.dv_id, page.c.action)
        .select_from(tables)
        .outerjoin(page, true())
        .where(tables.c.id == table_id)
        .order_by(page.c.path, page.c.dv_id)
    )


async def app_transaction(connection: AsyncConnection, table_id: UUID, app_id: str) -> Txn | None:
    query = select(app_transactions.c.action).where(
        app_transactions.c.table_id == table_id, app_transactions.c.app_id == key(app_id)
    )
    raw = (await connection.execute(query)).scalar_one_or_none()
    return None if raw is None else txn_of(raw)


async def ping(connection: AsyncConnection) -> None:
    # Answered by a database that has our tables only.
    await connection.execute(select(tables.c.id).limit(0))


def _live_at(version: int) -> ColumnElement[bool]:
    removed = files.c.removed_version
    return (files.c.added_version <= version) & or_(removed.is_(None), removed > version)
