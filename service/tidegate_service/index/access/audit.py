"""Rows of the audit trail, each written in the transaction of what it tells of."""

from uuid import UUID

from sqlalchemy import ColumnElement, Insert, Table, insert, literal, select, true
from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_service.core.access.audit import Change, Deed
from tidegate_service.core.access.roles import Caller
from tidegate_service.index.rows.keys import key
from tidegate_service.index.schema.access import audit
from tidegate_service.index.schema.tables import commits, past_commits

_OF_A_COMMIT = [
    "principal",
    "deed",
    "table_id",
    "table_name",
    "version",
    "transaction_id",
    "commit_timestamp",
    "request_id",
]


async def record_change(
    connection: AsyncConnection, change: Change, *, table_id: UUID, table_name: str
) -> None:
    """Add the row of one change of a table."""
    transaction_id = change.transaction_id
    await connection.execute(
        insert(audit).values(
            principal=change.by.name,
            deed=change.deed.value,
            table_id=table_id,
            table_name=table_name,
            version=change.version,
            from_version=change.from_version,
            transaction_id=None if transaction_id is None else key(transaction_id),
            request_id=change.by.request_id,
        )
    )


async def record_token(
    connection: AsyncConnection, deed: Deed, *, by: Caller, token_id: str
) -> None:
    """Add the row of a change of a token."""
    await connection.execute(
        insert(audit).values(
            principal=by.name, deed=deed.value, token_id=token_id, request_id=by.request_id
        )
    )


async def keep_commits(
    connection: AsyncConnection, table_id: UUID, table_name: str, *, first: int, last: int
) -> None:
    """Add a row for each of these versions of a table whose own rows are about to go. What was
    written past the service is nobody's deed."""
    of_versions = commits.c.version.between(first, last)
    await connection.execute(_kept(commits, table_id, table_name, of_versions))


async def keep_unnamed_commits(
    connection: AsyncConnection, table_id: UUID, table_name: str, *, before: int
) -> None:
    """The same for the versions before this one of a table that goes on, as far as no row of
    `past_commits` will have them: those without a transaction id."""
    unnamed = (commits.c.version < before) & commits.c.transaction_id.is_(None)
    await connection.execute(_kept(commits, table_id, table_name, unnamed))


async def keep_past_commits(connection: AsyncConnection, table_id: UUID, table_name: str) -> None:
    """The same for the commits of which no more is there than their ids."""
    await connection.execute(_kept(past_commits, table_id, table_name, true()))


def _kept(source: Table, table_id: UUID, table_name: str, which: ColumnElement[bool]) -> Insert:
    made = (
        select(
            source.c.principal,
            literal(Deed.COMMIT.value),
            source.c.table_id,
            literal(table_name),
            source.c.version,
            source.c.transaction_id,
            source.c.timestamp,
            source.c.request_id,
        )
        .where(source.c.table_id == table_id, source.c.principal.is_not(None), which)
        .order_by(source.c.version)
    )
    return insert(audit).from_select(_OF_A_COMMIT, made)
