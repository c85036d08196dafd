"""Looking up a table by its name or id: what nearly every request begins with."""

from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_service.core.ports.records import TableHead, TableRecord
from tidegate_service.index.postgres import pipeline
from tidegate_service.index.postgres.connections import driver_of
from tidegate_service.index.postgres.parameters import int8, text, uuid
from tidegate_service.index.postgres.pipeline import Query, Row, Statement
from tidegate_service.index.reading.reads import table_id_of
from tidegate_service.index.rows.newest import newest_row
from tidegate_service.index.rows.table_rows import METADATA_BYTES, columns, head_of, table_of

_NONE, _ALL = -1, 2**62
"""Bytes of protocol and metadata."""
_ROW = columns(where=f"{METADATA_BYTES} <= $2")
BY_ID = Statement(newest_row("$1", _ROW))
# The collation of the column's index, so the same notion of case.
BY_NAME = Statement(newest_row('lower($1 COLLATE "C")', _ROW, key="lower(name)"))


async def table(connection: AsyncConnection, ref: str) -> TableRecord | None:
    row = await _row_of(connection, ref, most_metadata=_ALL)
    return None if row is None else table_of(row)


async def head(connection: AsyncConnection, ref: str) -> TableHead | None:
    row = await _row_of(connection, ref, most_metadata=_NONE)
    return None if row is None else head_of(row)


async def table_if_narrow(
    connection: AsyncConnection, ref: str, *, most_metadata: int
) -> TableRecord | TableHead | None:
    row = await _row_of(connection, ref, most_metadata=most_metadata)
    if row is None:
        return None
    found = head_of(row)
    return found if found.metadata_bytes > most_metadata else table_of(row)


async def _row_of(connection: AsyncConnection, ref: str, *, most_metadata: int) -> Row | None:
    """The row, whose protocol and metadata are null where they have more bytes."""
    if "\0" in ref:
        return None  # Postgres would refuse the question.
    table_id = table_id_of(ref)
    if table_id is None:
        asked = Query(BY_NAME, text(ref), int8(most_metadata))
    else:
        asked = Query(BY_ID, uuid(table_id), int8(most_metadata))
    rows = await pipeline.read(await driver_of(connection), asked)
    return rows[0] if rows else None
