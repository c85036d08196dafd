"""Bodies as they come: inflated, bounded, and handed on a piece at a time, off the event loop."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from typing import Protocol, TypeVar

from fastapi import Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tidegate_protocol.base.problems import Code
from tidegate_protocol.base.strict_json import containers
from tidegate_service.api.bodies.encodings import Gunzip, is_gzip
from tidegate_service.api.http.problems.problems import AnswerBrokenOff
from tidegate_service.api.http.request.body_memory import Reservation
from tidegate_service.api.http.request.requests import (
    NDJSON,
    RequestState,
    body_memory_of,
    body_threads_of,
    gate_of,
    state_of,
)
from tidegate_service.core.context import Context
from tidegate_service.core.errors import Refused, ServiceError
from tidegate_service.core.sharing.pools import Share

T = TypeVar("T")

ON_LOOP_BYTES = 32 * 1024
ON_LOOP_CONTAINERS = 1_000
"""Most bytes, and objects and arrays in them, that are decoded on the event loop: a millisecond of
usual actions, and some milliseconds of the shortest ones."""
PIECE_BYTES = 256 * 1024
"""What is handed to a thread at a time of what is longer."""
MAX_VALUES = 8_000_000
"""Most values of a JSON body, by its commas, braces and brackets, those in texts included. Actions
with the statistics of many columns have one in ten bytes. To pass over so many, without making
any, takes a parser a fifth of a second, in which nothing else is done."""
_SHORT_DIGITS = 5
"""Of the length of a body that is short: below 100 kB."""
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

    def end(self) -> None:
        """Nothing more comes."""
        ...


def is_quick(text: bytes) -> bool:
    """Whether it may be decoded on the event loop."""
    return len(text) <= ON_LOOP_BYTES and containers(text) <= ON_LOOP_CONTAINERS


def reservation_of(request: Request) -> Reservation:
    """What the request holds of the memory for bodies, until it ends: nothing yet."""
    reservation = Reservation(body_memory_of(request))
    state_of(request).at_end.append(reservation.give_back)
    return reservation


async def short_body(request: Request) -> bytes | None:
    """The body, where it is sent as it is and says that it is short; nothing of any other is
    taken. It needs no reader, and no memory or thread to be received."""
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


async def read_into(reader: Reader, request: Request, *, max_bytes: int) -> Reservation:
    """Feed the request's body, inflated where it is gzip, to the reader, and end it: in threads,
    but for a body that is quick as a whole and sent as it is. `max_bytes` bounds what is sent and
    what it inflates to. Returns what the request holds of the memory for bodies by then, to be
    grown by what becomes of the body.

    Raises `Refused` (`unsupported-media-type`, `too-large`, `malformed-http`) and `Unavailable`
    (`backpressure`), and what the reader raises.
    """
    state = state_of(request)
    reservation = reservation_of(request)
    feed: Callable[[bytes], None] = reader.feed
    gunzip = Gunzip(max_bytes=max_bytes) if is_gzip(request) else None
    if gunzip is not None:
        feed = _inflating(gunzip, reader.feed)
    received, fed, held = 0, 0, list[bytes]()
    threads = body_threads_of(request)
    feeding = _Feeding(feed, threads)
    try:
        async for chunk in request.stream():
            held.append(chunk)
            received += len(chunk)
            if received > max_bytes:
                raise too_large(max_bytes)
            reservation.grow(max(received, reader.size))
            if received - fed >= PIECE_BYTES:
                # Sent as fast as it is read: what comes meanwhile waits in the sockets, but for
                # the piece that is fed next.
                await feeding.begin(b"".join(held))
                if fed // LONG_BODY_BYTES < received // LONG_BODY_BYTES:
                    state.begin_anew()
                fed, held = received, []
        await feeding.done()
    finally:
        await feeding.over()

    def finish(last: bytes) -> None:
        feed(last)
        if gunzip is not None:
            gunzip.end()
        reader.end()

    last = b"".join(held)
    # A kilobyte of gzip may inflate to a hundred thousand actions.
    if fed or gunzip is not None or not is_quick(last):
        await threads.run(finish, last)
    else:
        await gate_of(request).begin(state)
        finish(last)
    if max(received, reader.size) >= LONG_BODY_BYTES:
        state.take_long()
    reservation.grow(max(received, reader.size))
    return reservation


class _Feeding:
    """Feeds one piece at a time in a thread, while the next one comes."""

    def __init__(self, feed: Callable[[bytes], None], threads: Share) -> None:
        self._feed = feed
        self._threads = threads
        self._fed: asyncio.Task[None] | None = None

    async def begin(self, piece: bytes) -> None:
        """Raises what feeding the piece before raised."""
        await self.done()
        self._fed = asyncio.create_task(self._threads.run(self._feed, piece), name="feed")

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


async def while_connected(receive: Receive, work: Coroutine[None, None, T]) -> T:
    """The result of work for a request whose body was read, given up where its caller goes. Raises
    `ClientDisconnect` then, and what the work raises."""
    working = asyncio.create_task(work, name="while-connected")
    listening = asyncio.create_task(_disconnected(receive), name="disconnected")
    try:
        await asyncio.wait([working, listening], return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        for task in (working, listening):
            task.cancel()
        await asyncio.wait([working, listening])
        if not working.cancelled():
            # Nobody is left to be told, if it was not done above.
            working.exception()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class Streamed(Response):
    """An answer in pieces, which are given up, and closed, where its caller goes."""

    def __init__(
        self,
        pieces: AsyncGenerator[bytes, None],
        *,
        media_type: str,
        length: int | None = None,
    ) -> None:
        """`length` is that of all pieces, where it is known before they are made."""
        super().__init__(media_type=media_type)
        del self.headers["content-length"]
        if length is not None:
            self.headers["content-length"] = str(length)
        self._pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await while_connected(receive, self._sent(send))

    async def _sent(self, send: Send) -> None:
        head = {"status": self.status_code, "headers": self.raw_headers}
        async with aclosing(self._pieces) as pieces:
            await send({"type": "http.response.start", **head})
            async for piece in pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def unhurried(
    items: AsyncGenerator[T, None], context: Context, state: RequestState
) -> AsyncGenerator[T, None]:
    """The same items. With each the request has its long deadline once more, and ends at the latest
    after twice that time. Few bytes are sent in a long time, which the edge takes for a client that
    stopped."""
    until_s = context.monotonic_s() + context.long_deadline_s
    state.take_long()
    async with aclosing(items):
        async for item in items:
            yield item
            # What is sent has the usual deadline begin anew.
            if context.monotonic_s() < until_s:
                state.take_long()


async def begun(pieces: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    """The same pieces of an answer, the first one made: what fails before it can still be a
    problem, and what fails later breaks the answer off."""
    first = await anext(pieces, None)

    async def rest() -> AsyncGenerator[T, None]:
        nonlocal first
        try:
            async with aclosing(pieces):
                if first is not None:
                    yield first
                    # It may be megabytes, for as long as the slowest reader takes.
                    first = None
                async for piece in pieces:
                    yield piece
        except ServiceError as error:
            raise AnswerBrokenOff(error) from error

    return rest()


class WholeBody:
    """A `Reader` that keeps the body as it is."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._values = 0
        self.size = 0

    def feed(self, piece: bytes) -> None:
        """Raises `Refused` (`too-large`) once there are more values than `MAX_VALUES`."""
        self._values += piece.count(b",") + containers(piece)
        if self._values > MAX_VALUES:
            raise Refused(
                f"the body has more than {MAX_VALUES} commas, objects and arrays, which is as "
                "many as are taken in a JSON body",
                code=Code.TOO_LARGE,
                hint=f"send actions as {NDJSON}, or split the work into several transactions",
            )
        self._pieces.append(piece)
        self.size += len(piece)

    def end(self) -> None:
        """It is whole."""

    def whole(self) -> bytes:
        return b"".join(self._pieces)


def too_large(max_bytes: int) -> Refused:
    return Refused(
        f"the body is larger than {max_bytes} bytes",
        code=Code.TOO_LARGE,
        hint="split the work into several transactions",
    )
