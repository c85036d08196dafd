"""A connection: bounds on a request's head, and on how long an answer may wait to be read.

httptools bounds neither the size of a request's head nor the time it may take to arrive.
"""

from asyncio import Transport
from contextvars import Context
from typing import cast

from starlette.types import Scope
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from tidegate_protocol.base.problems import Code
from tidegate_service.api.http.request.heads import PROXIED
from tidegate_service.api.server.config import ServerConfig
from tidegate_service.api.server.connections import end_at_once
from tidegate_service.api.server.joined import Joined
from tidegate_service.api.server.little_reads import LittleReads
from tidegate_service.api.server.refusal import refusal
from tidegate_service.api.server.request_size import MAX_HEAD_BYTES, RequestSize, TooMuch, long_head
from tidegate_service.api.server.sliced_reads import PIECE_BYTES, ReadFlow, SlicedReads
from tidegate_service.api.server.upgrades import UpgradeFreeProtocol
from tidegate_service.core.access.addresses import source_of

_VERSIONS = ("1.0", "1.1")
DROPPED_BYTES = 512 * 1024
"""What is read of a connection that ends with an answer, until it ends at once."""


class BoundedProtocol(UpgradeFreeProtocol):
    """Refuses a request whose head is too large, too slow in coming or for no path of ours.

    One request of a connection is worked on at a time. What comes after it waits for the answer.
    Where it was read with the end of the request before, and so may begin anywhere in what was
    read, it is dropped: the connection ends with the answer, and whoever sent it sends it again
    (RFC 9112, 9.3.2).
    """

    _in_head = False
    _in_rest = False
    _head_bytes = 0
    _in_body = False
    _left = 0
    _refused = False
    _dropped = 0
    _requests = 0
    _running: RequestResponseCycle | None = None
    _joined: Joined | None = None
    _size: RequestSize
    address: str
    """As which it is counted."""

    @property
    def _bounds(self) -> ServerConfig:
        return cast(ServerConfig, self.config)

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._body_parts: list[bytes] = []
        self.flow = self._flow = ReadFlow(self.transport)
        self._is_proxys = self._bounds.connections.proxies.has(self.address)
        self._little = LittleReads(self.transport, self._flow, self.loop)
        self._sliced = SlicedReads(
            self.transport,
            self._flow,
            self._bounds.slices,
            share=self._bounds.connections.share_of(self.address),
            source=source_of(self.address),
            parse=self._read,
            piece=self._piece,
            too_early=self._end_after_answer,
        )
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._bounds.connections.leave(self.address)
        self._bounds.connections.sending.end(self)
        self._little.end()
        self._sliced.end()
        # There is nothing left to be read again.
        self.flow.read_paused = False
        self._head_arrived()
        self._rest_arrived()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def pause_writing(self) -> None:
        """More is to be sent than its reader takes."""
        super().pause_writing()
        self._bounds.connections.sending.begin(self, self._unread)

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():
            self._bounds.connections.sending.end(self)

    def on_message_begin(self) -> None:
        if self._is_running():
            self._end_after_answer()
            raise _Refused
        super().on_message_begin()
        self._size = RequestSize()
        self._rest_arrived()
        self._unset_keepalive_if_required()
        if not self._in_head:
            self._await_head()

    def on_header(self, name: bytes, value: bytes) -> None:
        try:
            self._size.header(name, value)
        except TooMuch as much:
            self._refuse(much.code, much.detail)
            raise
        # A trailer is read by nobody, and added to the headers it would pass for a header that
        # came in time to be looked at.
        if not self._in_body:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._head_arrived()
        try:
            self._size.head_ends(self.url)
        except TooMuch as much:
            self._refuse(much.code, much.detail)
            raise
        if self.parser.get_http_version() not in _VERSIONS:
            self._refuse(Code.MALFORMED_HTTP, "expected an HTTP/1.1 request")
            raise _Refused
        if not self.url.startswith(b"/"):
            # The whole URL, or a host alone, is for a proxy; its host would not be the header's.
            self._refuse(Code.MALFORMED_HTTP, "expected a request target that starts with a slash")
            raise _Refused
        if self._is_proxys:
            self._forwarded()
        super().on_headers_complete()
        # Its task has not begun to run yet.
        self._joined = Joined(self.transport, self.loop, close=self._answer_ended)
        self.cycle.transport = cast(Transport, self._joined)
        self._in_body = True
        # None of a body in chunks.
        self._left = sum(int(value) for name, value in self.headers if name == b"content-length")

    def _forwarded(self) -> None:
        """The request is that of whom the proxy tells."""
        caller = self._bounds.connections.proxies.caller(self.address, self.headers)
        self._sliced.source = source_of(caller)
        self.scope["client"] = (caller, 0)
        cast(Scope, self.scope)[PROXIED] = True

    def on_chunk_header(self) -> None:
        self._sliced.chunk_begins()
        try:
            self._size.chunk()
        except TooMuch as much:
            self._refuse(much.code, much.detail)
            raise

    def on_body(self, body: bytes) -> None:
        self._size.data(len(body))
        if self._left:
            self._left -= len(body)
        self._body_parts.append(body)

    def _deliver_body(self) -> None:
        """Give the request what came of its body, as one."""
        if self._body_parts:
            body = b"".join(self._body_parts)
            self._body_parts.clear()
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._deliver_body()
        self._in_body = False
        self._requests += 1
        self._sliced.request_ends()
        self._little.request_ends()
        super().on_message_complete()
        self._rest_arrived()
        if self._answered() and not self.transport.is_closing():
            # What was answered before it was complete.
            self._bounds.silences.begin(self, self._overdue)

    def data_received(self, data: bytes) -> None:
        before = self._requests
        self._sliced.read(data)
        if self._requests == before:
            self._little.read(len(data))

    def eof_received(self) -> None:
        """Whoever sends no more has gone: nothing tells them from those who read no more, either.
        What is written is still sent, if it is read in time."""
        self._close()

    def _piece(self) -> int:
        """How many bytes may be parsed at once: what is left of a body without chunks, and else so
        few that not much can begin in them."""
        if self._refused:
            return DROPPED_BYTES
        if self._in_body:
            return self._left or PIECE_BYTES
        return 0 if self._is_running() else PIECE_BYTES

    def _read(self, data: bytes | memoryview) -> None:
        if self._refused:
            self._dropped += len(data)
            if self._dropped > DROPPED_BYTES:
                self._close()
            return
        requests = self._requests
        super().data_received(cast(bytes, data))
        self._deliver_body()
        if self._in_head:
            # Still in the head: one that never ends must not fill the memory.
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
                self._refuse(Code.TOO_LARGE, long_head().detail)
        elif (
            self._answered()
            and self._requests == requests
            and not (self._in_rest or self.transport.is_closing())
        ):
            # Neither a request nor silence, which has a deadline of its own: the rest of a body
            # that nobody reads, or empty lines. Not for ever.
            self._await_rest()
        if self._in_body:
            self._check_framing(len(data))

    def _check_framing(self, received: int) -> None:
        try:
            self._size.received(received)
        except TooMuch as much:
            self._refuse(much.code, much.detail)

    def on_response_complete(self) -> None:
        """As uvicorn's, but for the timer: it has one for each answer."""
        self.server_state.total_requests += 1
        if self._running is not None:
            self._running.body.clear()  # Nobody reads what is left of it.
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self._in_body:
            self._await_rest()
        else:
            self._bounds.silences.begin(self, self._overdue)
        # The answer's head may be sent only after this, and what comes next is another request.
        self.loop.call_soon(self._sliced.go_on, context=Context())

    def _unset_keepalive_if_required(self) -> None:
        self._bounds.silences.end(self)

    def _answered(self) -> bool:
        return self._running is not None and self._running.response_complete

    def _is_running(self) -> bool:
        return self._running is not None and not self._running.response_complete

    def send_400_response(self, msg: str) -> None:
        """What the parser cannot read is a problem like any other."""
        if not self._refused:
            self._refuse(Code.MALFORMED_HTTP, "expected an HTTP/1.1 request")

    def _await_head(self) -> None:
        self._head_bytes = 0
        self._in_head = True
        self._bounds.heads.begin(self, self._overdue)

    def _head_arrived(self) -> None:
        self._in_head = False
        self._bounds.heads.end(self)

    def _await_rest(self) -> None:
        self._in_rest = True
        self._bounds.rests.begin(self, self._overdue)

    def _rest_arrived(self) -> None:
        if self._in_rest:
            self._in_rest = False
            self._bounds.rests.end(self)

    def _overdue(self) -> None:
        self._close()

    def _close(self) -> None:
        """What is written is still sent, if it is read in time."""
        if not self.transport.is_closing():
            self._bounds.connections.sending.begin(self, self._unread)
            self.transport.close()

    def _answer_ended(self) -> None:
        """The application has ended the connection, after an answer or amid it."""
        broken_off = self._running is not None and not self._running.response_complete
        if broken_off and self.transport.get_write_buffer_size():
            # What is not sent yet would hold the whole answer for as long as nobody reads it.
            self._unread()
        else:
            self._close()

    def _unread(self) -> None:
        # Closed, it would wait with all that is not sent for as long as its reader likes, and so
        # would the system with what it has of that.
        end_at_once(self.transport)
        self.transport.abort()

    def _refuse(self, code: Code, detail: str) -> None:
        """End the parser's work. What is told would elsewhere be taken for the answer to the
        request before, or for a part of it."""
        self._refused = True
        if self._in_body:
            if not self.cycle.response_started:
                self.transport.write(refusal(code, detail))
            self._close()
        elif self._is_running():
            self._end_after_answer()
        else:
            if self._joined is not None:
                # Of an answer without a body, which is complete before it is sent.
                self._joined.send_head()
            self.transport.write(refusal(code, detail))
            self._close()

    def _end_after_answer(self) -> None:
        """The connection ends with the answer to the request that runs. What comes until then is
        read, and dropped: the system would break off the answer for what it has still unread."""
        self._refused = True
        self.cycle.keep_alive = False


class _Refused(Exception):
    """Ends the parser's work on a request that has its answer already."""
