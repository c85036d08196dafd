"""Making what the index holds of a table anew, in one commit section."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import (
    Column,
    MetaData,
    Table,
    delete,
    exists,
    func,
    insert,
    select,
    text,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_service.core.records import TableRecord, TableState
from tidegate_service.index.rows import expanded, table_record
from tidegate_service.index.schema import (
    app_transactions,
    commits,
    domain_metadata,
    files,
    metadata_versions,
    past_commits,
    tables,
)

COMMITS_AT_ONCE = 20_000
_STATE = (files, app_transactions, domain_metadata, metadata_versions, past_commits)

_ASIDE = Table(
    "commits_before_rebuild",
    MetaData(),
    *(Column(column.name, column.type) for column in past_commits.c),
)

# Replaying the log must not meet the ids that it is about to bring back, so they wait where
# only this transaction sees them.
_PUT_ASIDE = text(
    "CREATE TEMPORARY TABLE commits_before_rebuild (LIKE past_commits) ON COMMIT DROP"
)


async def release(connection: AsyncConnection, table_id: UUID) -> TableRecord:
    return await _updated(
        connection, table_id, {"state": TableState.ACTIVE.value, "state_reason": None}
    )


async def held(
    connection: AsyncConnection, table_id: UUID, *, after: int
) -> Sequence[tuple[int, bytes]]:
    query = (
        select(commits.c.version, commits.c.content)
        .where(commits.c.table_id == table_id, commits.c.version > after)
        .order_by(commits.c.version)
    )
    return [(row.version, expanded(row.content)) for row in await connection.execute(query)]


async def put_aside(connection: AsyncConnection, table_id: UUID) -> None:
    """Keep what ids landed as for `restore_ids`."""
    names = [column.name for column in past_commits.c]
    await connection.execute(_PUT_ASIDE)
    for source in (past_commits, commits):
        rows = select(*(source.c[name] for name in names)).where(
            source.c.table_id == table_id, source.c.transaction_id.is_not(None)
        )
        await connection.execute(insert(_ASIDE).from_select(names, rows))


async def drop_state(connection: AsyncConnection, table_id: UUID) -> None:
    """Drop what commits made, so that they can go."""
    for dependent in _STATE:
        await connection.execute(delete(dependent).where(dependent.c.table_id == table_id))


async def drop_commits(connection: AsyncConnection, table_id: UUID, *, after: int) -> None:
    """Drop the versions after one. Each is looked for in all that refer to versions, which takes
    long enough for a statement to have no time for hundreds of thousands."""
    await connection.execute(
        delete(commits).where(commits.c.table_id == table_id, commits.c.version > after)
    )


async def reset(connection: AsyncConnection, table_id: UUID) -> TableRecord:
    """The row of a table without versions, of which nothing is left."""
    return await _updated(
        connection,
        table_id,
        {
            "state": TableState.ACTIVE.value,
            "state_reason": None,
            "latest_version": -1,
            "published_version": -1,
            "latest_timestamp": -1,
            "first_version": 0,
            "protocol": None,
            "metadata": None,
            "num_files": 0,
            "size_bytes": 0,
            "epoch": tables.c.epoch + 1,
        },
    )


async def rewritten(connection: AsyncConnection, table_id: UUID) -> int | None:
    """The first version of an id put aside whose bytes are other ones now."""
    query = select(func.min(commits.c.version)).where(
        commits.c.table_id == table_id,
        commits.c.version == _ASIDE.c.version,
        commits.c.content_sha256 != _ASIDE.c.content_sha256,
    )
    version: int | None = (await connection.execute(query)).scalar_one()
    return version


async def restore_ids(connection: AsyncConnection, table_id: UUID) -> None:
    names = [column.name for column in past_commits.c]
    # A commit that only claims an id has it not, though the log forgot whose it is.
    await connection.execute(
        update(commits)
        .where(
            commits.c.table_id == table_id,
            commits.c.transaction_id == _ASIDE.c.transaction_id,
            commits.c.version != _ASIDE.c.version,
        )
        .values(transaction_id=None)
    )
    lost = select(*(_ASIDE.c[name] for name in names)).where(
        ~exists().where(
            commits.c.table_id == table_id,
            commits.c.transaction_id == _ASIDE.c.transaction_id,
        )
    )
    await connection.execute(insert(past_commits).from_select(names, lost))
    # The log does not say by whom and by which request a commit was made.
    await connection.execute(
        update(commits)
        .where(
            commits.c.table_id == table_id,
            commits.c.transaction_id == _ASIDE.c.transaction_id,
        )
        .values(principal=_ASIDE.c.principal, request_id=_ASIDE.c.request_id)
    )


async def _updated(
    connection: AsyncConnection, table_id: UUID, values: dict[str, object]
) -> TableRecord:
    row = await connection.execute(
        update(tables).where(tables.c.id == table_id).values(values).returning(*tables.c)
    )
    return table_record(row.one())
