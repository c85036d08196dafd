"""The bytes of versions as they are stored, read a piece at a time.

A whole value of half a gigabyte would hold the event loop for seconds while the driver takes it
out of the server's answer. The column is stored uncompressed (`EXTERNAL`), so a piece of it costs
what it has and no more.
"""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_protocol.log.content import LogFile
from tidegate_service.core.errors import IndexUnavailable
from tidegate_service.core.ports.contents import LargeVersion, Turn
from tidegate_service.core.sharing.pools import Share
from tidegate_service.index.limits import IndexLimits
from tidegate_service.index.postgres import pipeline
from tidegate_service.index.postgres.connections import Connections, driver_of
from tidegate_service.index.postgres.parameters import int8, uuid
from tidegate_service.index.postgres.pipeline import (
    Query,
    Row,
    Statement,
    as_bool,
    as_int,
    as_text,
)
from tidegate_service.index.reading.reads import table_id_of
from tidegate_service.index.rows.frames import Frame, ZstdError
from tidegate_service.index.rows.records import expanded
from tidegate_service.index.rows.stored_content import Stored, is_large, size_of, whole_if_small

ReadPiece = Callable[[int], Awaitable["Piece | None"]]
"""Reads what is stored from so many bytes on."""

EXPANDED_BYTES = 256 * 1024
"""What is made at a time of what is stored, with one block of 128 KiB."""
_IN_A_THREAD_BYTES = 256 * 1024
_PIECE = Statement("""
    SELECT content_held, content_sha256, octet_length(content),
        substring(content FROM $3::int FOR $4::int)
    FROM commits WHERE table_id = $1 AND version = $2 AND content IS NOT NULL
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What one query reads of the stored bytes of a version, which are `size` in all. `is_held` is
    whether they may be waiting for publishing."""

    is_held: bool
    sha256: str
    size: int
    stored: bytes

    def is_of(self, first: "Piece") -> bool:
        """Whether both are of the same bytes, as far as can be told before all are there."""
        return (self.sha256, self.size) == (first.sha256, first.size)


class ContentCalls:
    """The calls of `core.ports.contents.ContentIndex`."""

    _connections: Connections
    _limits: IndexLimits

    async def content(self, table_id: str, version: int) -> bytes | LargeVersion | None:
        return await self._found(table_id, version, held=True)

    async def kept_content(self, table_id: str, version: int) -> bytes | LargeVersion | None:
        return await self._found(table_id, version, held=False)

    async def stored_content(self, table_id: str, version: int) -> bytes | LogFile | None:
        identity = table_id_of(table_id)
        if identity is None:
            return None
        return await self._connections.read(
            lambda c: content_of(c, self._limits, identity, version)
        )

    async def _found(
        self, table_id: str, version: int, *, held: bool
    ) -> bytes | LargeVersion | None:
        identity = table_id_of(table_id)
        if identity is None:
            return None
        read = partial(self._piece, identity, version)
        first = await read(0)
        if first is None or (held and not first.is_held):
            return None
        if is_large(first.stored):
            return StoredVersion(first, read)
        stored = await _whole(first, read)
        if len(stored) <= _IN_A_THREAD_BYTES:
            return expanded(stored)
        return await asyncio.to_thread(expanded, stored)

    async def _piece(self, table_id: UUID, version: int, after: int) -> Piece | None:
        asked = _asked(table_id, version, after, self._limits)

        async def read(connection: AsyncConnection) -> Piece | None:
            return _piece_of(await pipeline.read(await driver_of(connection), asked))

        return await self._connections.read(read)


class StoredVersion:
    """Implements `core.ports.contents.LargeVersion`: what it holds of the version is the first
    piece."""

    def __init__(self, first: Piece, read: ReadPiece) -> None:
        self._first = first
        self._read = read

    def __len__(self) -> int:
        return size_of(self._first.stored)

    async def pieces(self, turn: Turn, threads: Share) -> AsyncGenerator[bytes, None]:
        first, frame, sha = self._first, Frame(self._first.stored), hashlib.sha256()

        def expand() -> bytes:
            made = frame.more(EXPANDED_BYTES)
            sha.update(made)
            return made

        read = len(first.stored)
        frame.feed(first.stored)
        last = b""
        while not frame.is_over:
            try:
                made = await threads.run(expand)
            except ZstdError as error:
                raise _not_that(str(error)) from error
            if made:
                if last:
                    yield last
                last = made
            elif not frame.is_over:
                async with turn():
                    piece = _next_of(first, await self._read(read))
                read += len(piece)
                frame.feed(piece)
        # Pieces are read one by one: all of them together are what was committed, or nothing is.
        if sha.hexdigest() != first.sha256:
            raise _not_that("they have another SHA-256")
        yield last


async def content_of(
    connection: AsyncConnection,
    limits: IndexLimits,
    table_id: UUID,
    version: int,
    *,
    is_held: bool = False,
) -> bytes | LogFile | None:
    """The bytes of a version; `is_held` asks for those that may be waiting for publishing only."""
    stored = await stored_of(connection, limits, table_id, version, is_held=is_held)
    return None if stored is None else whole_if_small(stored)


async def stored_of(
    connection: AsyncConnection,
    limits: IndexLimits,
    table_id: UUID,
    version: int,
    *,
    is_held: bool = False,
) -> Stored | None:
    """The same, as they are stored."""
    return await stored_by(
        connection, lambda after: _asked(table_id, version, after, limits), is_held=is_held
    )


async def stored_by(
    connection: AsyncConnection, asked: Callable[[int], Query], *, is_held: bool = False
) -> Stored | None:
    """The same by any queries of what `Piece` has, each for what is behind so many bytes."""
    driver = await driver_of(connection)

    async def read(after: int) -> Piece | None:
        (rows,) = await pipeline.run(driver, [asked(after)])
        return _piece_of(rows)

    first = await read(0)
    if first is None or (is_held and not first.is_held):
        return None
    return await _whole(first, read)


def _asked(table_id: UUID, version: int, after: int, limits: IndexLimits) -> Query:
    return Query(
        _PIECE, uuid(table_id), int8(version), int8(after + 1), int8(limits.content_piece_bytes)
    )


def _piece_of(rows: Sequence[Row]) -> Piece | None:
    if not rows:
        return None
    ((is_held, sha256, size, stored),) = rows
    assert stored is not None, "a piece of what is there"
    return Piece(is_held=as_bool(is_held), sha256=as_text(sha256), size=as_int(size), stored=stored)


async def _whole(first: Piece, read: ReadPiece) -> Stored:
    if len(first.stored) == first.size:
        return first.stored
    # Of its length at once: half a gigabyte is not to be copied.
    stored, end = bytearray(first.size), len(first.stored)
    stored[:end] = first.stored
    while end < first.size:
        piece = _next_of(first, await read(end))
        stored[end : end + len(piece)] = piece
        end += len(piece)
    return stored


def _next_of(first: Piece, found: Piece | None) -> bytes:
    if found is None or not found.stored or not found.is_of(first):
        raise _not_that("others are there, or none")
    return found.stored


def _not_that(why: str) -> IndexUnavailable:
    return IndexUnavailable(
        f"the bytes of a version are not those any more that were begun with: {why}; ask again"
    )
