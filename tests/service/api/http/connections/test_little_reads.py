"""A request that is dealt out in little pieces is read seldom, and as it comes otherwise."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tidegate_service.api.server.little_reads import (
    FREE,
    LITTLE_BYTES,
    LONGEST_REST_S,
    LittleReads,
)
from tidegate_service.api.server.sliced_reads import ReadFlow

pytestmark = pytest.mark.anyio

PATIENCE_S = 30.0


class Counting(asyncio.Protocol):
    """Counts what it reads of a request that is never complete."""

    def __init__(self, *, completes: bool) -> None:
        self.sizes: list[int] = []
        self._completes = completes

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._little = LittleReads(transport, ReadFlow(transport), asyncio.get_running_loop())

    def data_received(self, data: bytes) -> None:
        self.sizes.append(len(data))
        if self._completes:
            self._little.request_ends()
        else:
            self._little.read(len(data))

    def connection_lost(self, exc: Exception | None) -> None:
        self._little.end()

    async def has(self, size: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while sum(self.sizes) < size:
                await asyncio.sleep(0.001)


@asynccontextmanager
async def sender(reader: Counting) -> AsyncIterator[socket.socket]:
    ours, theirs = socket.socketpair()
    transport, _ = await asyncio.get_running_loop().create_connection(lambda: reader, sock=theirs)
    with ours:
        yield ours
        transport.close()


@pytest.mark.slow
async def test_little_pieces_are_read_together():
    reader = Counting(completes=False)
    async with sender(reader) as ours:
        began = time.monotonic()
        for count in range(1, 301):
            ours.send(b"x")
            if count <= FREE:
                await reader.has(count)
            await asyncio.sleep(0.001)
        await reader.has(300)
        took_s = time.monotonic() - began
    assert reader.sizes[:FREE] == [1] * FREE
    # Six rests until they are as long as may be.
    assert len(reader.sizes) <= FREE + 7 + took_s / LONGEST_REST_S


async def test_what_comes_fast_is_read_as_it_comes():
    reader = Counting(completes=False)
    async with sender(reader) as ours:
        for count in range(1, 4 * FREE + 1):
            ours.send(b"x" * LITTLE_BYTES)
            await reader.has(count * LITTLE_BYTES)
        assert len(reader.sizes) == 4 * FREE


async def test_requests_that_are_complete_do_not_count():
    reader = Counting(completes=True)
    async with sender(reader) as ours:
        for count in range(1, 4 * FREE + 1):
            ours.send(b"x")
            await reader.has(count)
    assert reader.sizes == [1] * 4 * FREE
