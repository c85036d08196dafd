"""A table's application transactions and domains, of which there may be very many, in pages."""

from collections.abc import AsyncIterator, Sequence
from functools import partial
from uuid import UUID

from sqlalchemy import ColumnElement, Row, Table, select
from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_service.index.postgres.connections import Connections
from tidegate_service.index.schema.tables import app_transactions, domain_metadata

ACTIONS_A_PAGE = 1_000


async def unchanged_since(
    connections: Connections, table_id: UUID, version: int
) -> AsyncIterator[Sequence[bytes]]:
    for source, name in (
        (app_transactions, app_transactions.c.app_id),
        (domain_metadata, domain_metadata.c.domain),
    ):
        after: str | None = None
        while True:
            rows = await connections.read(
                partial(
                    _page, source=source, name=name, table_id=table_id, version=version, after=after
                )
            )
            if rows:
                yield [bytes(row.action) for row in rows]
            if len(rows) < ACTIONS_A_PAGE:
                break
            after = rows[-1].name


async def _page(
    connection: AsyncConnection,
    *,
    source: Table,
    name: ColumnElement[str],
    table_id: UUID,
    version: int,
    after: str | None,
) -> Sequence[Row[tuple[str, bytes]]]:
    query = select(name.label("name"), source.c.action).where(
        source.c.table_id == table_id, source.c.version <= version
    )
    if after is not None:
        query = query.where(name > after)
    return (await connection.execute(query.order_by(name).limit(ACTIONS_A_PAGE))).all()
