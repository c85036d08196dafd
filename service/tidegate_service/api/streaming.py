"""Bodies as they come: inflated, bounded, and handed on a piece at a time, off the event loop."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from fastapi import Request
from starlette.requests import ClientDisconnect

from tidegate_protocol.problems import Code
from tidegate_service.api.encodings import MAX_RATIO, Gunzip, is_gzip
from tidegate_service.api.requests import room_of, state_of
from tidegate_service.api.room import Claim
from tidegate_service.core.errors import Refused

OFF_LOOP_BYTES = 256 * 1024
"""Most that is decoded on the event loop, for about a millisecond per 100 KiB, and what is handed
to a thread at a time of what is longer."""
_SHORT_DIGITS = 5
"""Of the length of a body that is short: below 100 kB, which is below `OFF_LOOP_BYTES`."""
LONG_BODY_BYTES = 16 * 1024 * 1024
"""For each so many bytes that come, the request has its deadline once more, and the long one when
all are there: they take their time to land, too."""


class Reader(Protocol):
    """Takes a body piece by piece, in one thread at a time. Any method may raise what the request
    is answered with."""

    @property
    def size(self) -> int:
        """What is held by now, in bytes of memory, roughly."""
        ...

    def feed(self, piece: bytes) -> None: ...


async def short_body(request: Request) -> bytes | None:
    """The body, where it is sent as it is and says that it is short; nothing of any other is
    taken. It needs no room, no thread and no reader."""
    headers = state_of(request).headers
    length = headers.get(b"content-length", b"")
    if b"content-encoding" in headers or len(length) > _SHORT_DIGITS or not length.isdigit():
        return None
    body: bytes = b""
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        body += message.get("body", b"")
        if not message.get("more_body", False):
            return body


async def read_into(reader: Reader, request: Request, *, max_bytes: int) -> None:
    """Feed the request's body, inflated where it is gzip, to the reader: in threads, but for a
    body that is small as a whole. `max_bytes` bounds what is sent and what it inflates to.

    Raises `Refused` (`unsupported-media-type`, `too-large`, `malformed-http`) and `Unavailable`
    (`backpressure`), and what the reader raises.
    """
    state = state_of(request)
    claim = Claim(room_of(request))
    state.at_end.append(claim.give_back)
    feed: Callable[[bytes], None] = reader.feed
    gunzip = Gunzip(max_bytes=max_bytes) if is_gzip(request) else None
    if gunzip is not None:
        feed = _inflating(gunzip, reader.feed)
    received, fed, held = 0, 0, list[bytes]()
    feeding = _Feeding(feed)
    try:
        async for chunk in request.stream():
            held.append(chunk)
            received += len(chunk)
            if received > max_bytes:
                raise too_large(max_bytes)
            claim.grow(max(received, reader.size))
            if received - fed >= OFF_LOOP_BYTES:
                # Sent as fast as it is read: what comes meanwhile waits in the sockets, but for
                # the piece that is fed next.
                await feeding.begin(b"".join(held))
                if fed // LONG_BODY_BYTES < received // LONG_BODY_BYTES:
                    state.begin_anew()
                fed, held = received, []
        await feeding.done()
    finally:
        await feeding.over()
    last = b"".join(held)
    if fed or (gunzip is not None and received > OFF_LOOP_BYTES // MAX_RATIO):
        await asyncio.to_thread(feed, last)
    else:
        feed(last)
    if gunzip is not None:
        gunzip.end()
    if max(received, reader.size) >= LONG_BODY_BYTES:
        state.take_long()
    claim.grow(max(received, reader.size))


class _Feeding:
    """Feeds one piece at a time in a thread, while the next one comes."""

    def __init__(self, feed: Callable[[bytes], None]) -> None:
        self._feed = feed
        self._fed: asyncio.Task[None] | None = None

    async def begin(self, piece: bytes) -> None:
        """Raises what feeding the piece before raised."""
        await self.done()
        self._fed = asyncio.create_task(asyncio.to_thread(self._feed, piece), name="feed")

    async def done(self) -> None:
        if self._fed is not None:
            # Not the task itself: whoever is cancelled waits for the thread in `over`.
            await asyncio.wait([self._fed])
            fed, self._fed = self._fed, None
            fed.result()

    async def over(self) -> None:
        """However it went: no thread has the reader any more."""
        if self._fed is not None:
            await asyncio.wait([self._fed])
            # Nobody is left to be told.
            self._fed.exception()


def _inflating(gunzip: Gunzip, feed: Callable[[bytes], None]) -> Callable[[bytes], None]:
    def inflate(chunk: bytes) -> None:
        for piece in gunzip.pieces(chunk):
            feed(piece)

    return inflate


class WholeBody:
    """A `Reader` that keeps the body as it is."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self.size = 0

    def feed(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self.size += len(piece)

    def whole(self) -> bytes:
        return b"".join(self._pieces)


def too_large(max_bytes: int) -> Refused:
    return Refused(
        f"the body is larger than {max_bytes} bytes",
        code=Code.TOO_LARGE,
        hint="split the work into several transactions",
    )
