"""The application transactions and domains of a version, but for those that were set since, in
pages."""

from collections.abc import AsyncIterator, Sequence
from functools import partial
from uuid import UUID

from sqlalchemy import ColumnElement, Row, Table, select
from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_service.index.postgres.connections import Connections
from tidegate_service.index.rows.pages import bounded, bytes_of
from tidegate_service.index.schema.checkpoints import removed_domains
from tidegate_service.index.schema.tables import app_transactions, domain_metadata

ACTIONS_A_PAGE = 1_000


async def unchanged_since(
    connections: Connections, table_id: UUID, version: int
) -> AsyncIterator[Sequence[bytes]]:
    for source, name in (
        (app_transactions, app_transactions.c.app_id),
        (domain_metadata, domain_metadata.c.domain),
        (removed_domains, removed_domains.c.domain),
    ):
        page = partial(_page, source=source, name=name, table_id=table_id, version=version)
        after: str | None = None
        while rows := await connections.read(partial(page, after=after)):
            yield [bytes(row.action) for row in rows]
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
    if source is removed_domains:
        query = query.where(removed_domains.c.removed_version > version)
    if after is not None:
        query = query.where(name > after)
    page = bounded(
        query.order_by(name).limit(ACTIONS_A_PAGE),
        size=bytes_of(source.c.action),
        order=lambda columns: columns.name,
    )
    rows: Sequence[Row[tuple[str, bytes]]] = (await connection.execute(page)).all()
    return rows
