"""What was read of a connection, parsed in its order: a slice at a time where chunks may begin, and
nothing of a request before the one before it is answered.

The parser calls Python twice for each chunk, so what one read brings, a quarter of a megabyte, may
hold the event loop for milliseconds, on each of a caller's connections. So a request is parsed at
once until many of its chunks have begun, and then on in slices, in turns with others. Nothing more
of its connection is read while something waits.
"""

import asyncio
from asyncio import Transport
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from uvicorn.protocols.http.flow_control import FlowControl

from tidegate_service.core.errors import Unavailable
from tidegate_service.core.sharing.shares import Shares
from tidegate_service.core.sharing.turns import Passes

MANY_CHUNKS = 64
"""So many are a slice. What is read at once has fewer, where a client sends chunks of some KiB."""
PIECE_BYTES = 2 * 1024
"""Parsed at once where chunks may begin: the last piece of a slice brings some 300 at most."""
SLICES = 2
"""Slices that are parsed in one pass of the event loop, one of each address in turn."""
WAITING_BYTES = 128 * 1024 * 1024
"""What was read, and waits to be parsed, on all connections."""
FREE_BYTES = 16 * 1024
"""Of one connection; they are not counted."""
EARLY_BYTES = 32 * 1024
"""Of one connection, that come before an answer. They are not counted either: it may run for long,
and they would take the room of what others send meanwhile."""


class ReadFlow(FlowControl):
    """uvicorn's, which does not read on in a rest, or while something waits to be parsed."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self.has_slices = False
        self.rests = False

    def resume_reading(self) -> None:
        """As uvicorn's."""
        if self.read_paused:
            self.read_paused = False
            self.go_on()

    def go_on(self) -> None:
        """Read on, unless that has to wait."""
        if not (self.read_paused or self.has_slices or self.rests or self._transport.is_closing()):
            self._transport.resume_reading()


@dataclass(frozen=True)
class Slices:
    """What the connections of a server share: turns, by address, and room for what waits."""

    turns: Passes
    waiting: Shares

    @classmethod
    def usual(cls) -> "Slices":
        """With the bounds above."""
        return cls(Passes(SLICES), Shares(WAITING_BYTES, "bytes that wait to be parsed"))


class SlicedReads:
    """Those of one connection. `parse` takes what was read; `piece` tells how many bytes of it may
    be parsed next, and at once: none before an answer. `too_early` is called where more than
    `EARLY_BYTES` came before one; then all may be parsed, and is dropped. `share` is in whose name
    they wait. `source` has the turns, and may change from one request to the next."""

    def __init__(
        self,
        transport: Transport,
        flow: ReadFlow,
        slices: Slices,
        *,
        share: str | None,
        source: str,
        parse: Callable[[bytes | memoryview], None],
        piece: Callable[[], int],
        too_early: Callable[[], None],
    ) -> None:
        self._transport = transport
        self._flow = flow
        self._slices = slices
        self._share = share
        self.source = source
        self._parse = parse
        self._piece = piece
        self._too_early = too_early
        self._chunks = 0
        self._waiting: deque[bytes | memoryview] = deque()
        self._kept = 0
        self._feeding: asyncio.Task[None] | None = None

    def chunk_begins(self) -> None:
        """One more of the request that is parsed."""
        self._chunks += 1

    def request_ends(self) -> None:
        """It is complete: what comes next is another one."""
        self._chunks = 0

    def read(self, data: bytes) -> None:
        """So much has come."""
        self._waiting.append(data)
        self.go_on()

    def go_on(self) -> None:
        """Parse what may be parsed now, as after an answer."""
        if self._feeding is None and self._chunks <= MANY_CHUNKS:
            self._parse_slice()
        if self._transport.is_closing():
            return
        if not self._waiting:
            if self._feeding is None:
                self._read_on()
            return
        size = sum(map(len, self._waiting))
        if not self._piece():
            if size > EARLY_BYTES:
                self._too_early()
                self.go_on()
                return
            size = 0
        try:
            self._keep(size)
        except Unavailable:
            self._transport.abort()
            return
        self._flow.has_slices = True
        self._transport.pause_reading()
        if self._feeding is None and self._piece():
            self._feeding = asyncio.get_running_loop().create_task(self._feed(), name="slices")

    def end(self) -> None:
        """The connection has ended."""
        self._waiting.clear()
        self._keep(0)
        if self._feeding is not None:
            self._feeding.cancel()

    def _parse_slice(self) -> None:
        while self._waiting and self._chunks <= MANY_CHUNKS and not self._transport.is_closing():
            size = self._piece()
            if not size:
                return
            data = self._waiting.popleft()
            if len(data) > size:
                data, rest = memoryview(data)[:size], memoryview(data)[size:]
                # The whole read would be kept for a little of it.
                self._waiting.appendleft(bytes(rest) if len(rest) <= FREE_BYTES else rest)
            self._parse(data)

    async def _feed(self) -> None:
        try:
            while self._waiting and self._piece():
                await self._slices.turns.begin(self.source)
                self._chunks = 0
                self._parse_slice()
                if self._transport.is_closing():
                    return
        except Exception:
            # As where the loop itself calls: nobody would ever read on.
            self._transport.abort()
            raise
        finally:
            self._feeding = None
        if not self._waiting:
            self._read_on()

    def _read_on(self) -> None:
        self._keep(0)
        if self._flow.has_slices:
            self._flow.has_slices = False
            self._flow.go_on()

    def _keep(self, waiting: int) -> None:
        """Count so much as what waits. Raises `Unavailable` where there is no room."""
        size = waiting if waiting > FREE_BYTES else 0
        if size > self._kept:
            self._slices.waiting.take(self._share, size - self._kept)
        else:
            self._slices.waiting.give_back(self._share, self._kept - size)
        self._kept = size
