"""The protocol and metadata of a version, which may be megabytes.

Their length is known without reading them, rows come in Postgres's binary form, and long ones are
decoded in a thread, after the connection was given back.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_protocol.proposal.transaction import ReadState
from tidegate_service.core.ports.index import TakesLong
from tidegate_service.core.ports.records import LONG_METADATA
from tidegate_service.core.sharing import offload
from tidegate_service.index.postgres import pipeline
from tidegate_service.index.postgres.connections import Connections, driver_of
from tidegate_service.index.postgres.parameters import int8, uuid
from tidegate_service.index.postgres.pipeline import Row, Statement, as_int
from tidegate_service.index.reading import used_ids
from tidegate_service.index.reading.reads import table_id_of
from tidegate_service.index.rows.records import metadata_of, protocol_of
from tidegate_service.index.rows.table_rows import METADATA_BYTES

_ANY = 2**62
# The latest change at or before a version that exists.
_STATE = Statement(f"""
    SELECT {METADATA_BYTES},
        CASE WHEN {METADATA_BYTES} <= $3 THEN protocol END,
        CASE WHEN {METADATA_BYTES} <= $3 THEN metadata END
    FROM metadata_versions
    WHERE table_id = $1 AND version <= $2
      AND EXISTS (SELECT FROM commits WHERE commits.table_id = $1 AND commits.version = $2)
    ORDER BY version DESC
    LIMIT 1
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredState:
    """What a version has, as it is stored: nothing, where that has more bytes than were asked
    for."""

    version: int
    size: int
    protocol: bytes | None
    metadata: bytes | None

    async def decoded(self) -> ReadState:
        """Raises `TakesLong` where there is more than was asked for."""
        if self.protocol is None or self.metadata is None:
            raise TakesLong
        heavy = offload.HEAVY if self.size > LONG_METADATA else 0
        return await offload.run(heavy, _state_of, self.version, self.protocol, self.metadata)


Query = Callable[[AsyncConnection], Awaitable[StoredState | None]]
Read = Callable[[Query], Awaitable[StoredState | None]]
"""Runs a query: in a section's transaction, or on a connection that is taken for it alone."""


class StateCalls:
    """The calls of `core.ports.index.Index` about the state that a proposal has read."""

    _connections: Connections

    async def state_at(
        self, table_id: str, version: int, *, most_bytes: int | None = None
    ) -> ReadState | None:
        identity = table_id_of(table_id)
        if identity is None:
            return None
        return await _state_at(self._connections.read, identity, version, most_bytes, last=True)

    async def is_used(self, table_id: str, transaction_id: str) -> bool:
        identity = table_id_of(table_id)
        if identity is None:
            return False

        async def found(connection: AsyncConnection) -> bool:
            return await used_ids.is_used(await driver_of(connection), identity, transaction_id)

        return await self._connections.read(found)


async def state_in(
    statements: Callable[[], AbstractAsyncContextManager[AsyncConnection]],
    table_id: UUID,
    version: int,
    most_bytes: int | None,
) -> ReadState | None:
    """As `core.ports.index.CommitSection.state_at`."""

    async def read(query: Query) -> StoredState | None:
        async with statements() as connection:
            return await query(connection)

    return await _state_at(read, table_id, version, most_bytes, last=False)


async def _state_at(
    read: Read, table_id: UUID, version: int, most_bytes: int | None, *, last: bool
) -> ReadState | None:
    """The same; `last`, the query is all of its transaction."""
    if version == -1:
        return ReadState(version=-1, protocol=None, metadata=None)
    most = _ANY if most_bytes is None else most_bytes
    asked = pipeline.Query(_STATE, uuid(table_id), int8(version), int8(most))

    async def query(connection: AsyncConnection) -> StoredState | None:
        (rows,) = await pipeline.run(await driver_of(connection), [asked], last=last)
        return _stored(version, rows[0]) if rows else None

    found = await read(query)
    return None if found is None else await found.decoded()


def _stored(version: int, row: Row) -> StoredState:
    size, protocol, metadata = row
    return StoredState(version=version, size=as_int(size), protocol=protocol, metadata=metadata)


def _state_of(version: int, protocol: bytes, metadata: bytes) -> ReadState:
    return ReadState(
        version=version, protocol=protocol_of(protocol), metadata=metadata_of(metadata)
    )
