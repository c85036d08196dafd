"""uvicorn, with what it lacks: bounds on connections, on a request's head and on how long an answer
may wait to be read, and a stop that lets work finish.

Uses uvloop and httptools. httptools bounds neither the size of a request's head nor the time
it may take to arrive, and uvicorn none of the others.
"""

import contextlib
import logging
import socket
import time
import uuid
from asyncio import Transport
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import cast

import msgspec
import uvicorn
from starlette.types import ASGIApp
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from tidegate_protocol.base.problems import PROBLEM_MEDIA_TYPE, PROBLEMS, Code
from tidegate_service.api.http.deadlines import Deadlines
from tidegate_service.api.http.limits import USUAL, ServerLimits
from tidegate_service.api.http.problems import USUAL_RETRY_AFTER_S, problem_body
from tidegate_service.api.http.requests import Gate
from tidegate_service.api.server.connections import Connections, end_at_once
from tidegate_service.api.server.joined import Joined
from tidegate_service.api.server.upgrades import UpgradeFreeProtocol

access_log = logging.getLogger("tidegate.access")

MAX_HEAD_BYTES = 16 * 1024
"""Of a request's line and headers, and of what its chunks say of themselves beside their data."""
MAX_HEADERS = 100
_VERSIONS = ("1.0", "1.1")
MAX_PIPELINED = 64
"""Requests of one connection that wait for the one before. Whoever sends more sends them again."""
DISCONNECT_S = 1
"""How long answers may still be sent after `ServerLimits.drain_s`."""


class BoundedProtocol(UpgradeFreeProtocol):
    """Refuses a request whose head is too large, too slow in coming or for no path of ours."""

    _in_head = False
    _in_rest = False
    _head_bytes = 0
    _trailer_bytes = 0
    _in_body = False
    _refused = False
    _counted: str | None = None
    _running: RequestResponseCycle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._bounds = cast(_Config, self.config)
        address = "" if self.client is None else self.client[0]
        too_many = self._bounds.connections.enter(address)
        if too_many is None:
            self._counted = address
            self._await_head()
        else:
            self._refuse(Code.BACKPRESSURE, too_many)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._counted is not None:
            self._bounds.connections.leave(self._counted)
        self._bounds.connections.sending.end(self)
        if self._running is not None:
            # uvicorn tells the last request that came, which may wait behind the one that runs.
            self._running.disconnected = True
            self._running.message_event.set()
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
        if len(self.pipeline) > MAX_PIPELINED:
            # Without an answer: this one's place is behind those of the ones before.
            self._refused = True
            self._close()
            raise _Refused
        super().on_message_begin()
        self._trailer_bytes = 0
        self._rest_arrived()
        if not self._in_head:
            self._await_head()

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_body:
            super().on_header(name, value)
            return
        # A trailer. Nothing here reads one, and added to the headers it would pass for a header
        # that came in time to be looked at.
        self._trailer_bytes += len(name) + len(value)
        if self._trailer_bytes > MAX_HEAD_BYTES:
            self._refuse_head()
            raise _Refused

    def on_headers_complete(self) -> None:
        self._head_arrived()
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > MAX_HEAD_BYTES or len(self.headers) > MAX_HEADERS:
            self._refuse_head()
            raise _Refused
        if self.parser.get_http_version() not in _VERSIONS:
            self._refuse(Code.MALFORMED_HTTP, "expected an HTTP/1.1 request")
            raise _Refused
        if not self.url.startswith(b"/"):
            # The whole URL, or a host alone, is for a proxy; its host would not be the header's.
            self._refuse(Code.MALFORMED_HTTP, "expected a request target that starts with a slash")
            raise _Refused
        super().on_headers_complete()
        # Its task has not begun to run yet.
        joined = Joined(self.transport, self.loop, close=self._answer_ended)
        self.cycle.transport = cast(Transport, joined)
        self._in_body = True

    def on_message_complete(self) -> None:
        self._in_body = False
        super().on_message_complete()
        self._rest_arrived()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._in_head:
            # Still in the head: one that never ends must not fill the memory.
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
                self._refuse_head()
        elif not self._in_rest and self._answered() and not self.transport.is_closing():
            # Neither a request nor silence, which has a deadline of its own: the rest of a body
            # that nobody reads, or empty lines. Not for ever.
            self._await_rest()

    def on_response_complete(self) -> None:
        """As uvicorn's, but for the timer: it has one for each answer."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)
        elif self._in_body:
            self._await_rest()
        else:
            self._bounds.silences.begin(self, self._overdue)

    def _unset_keepalive_if_required(self) -> None:
        self._bounds.silences.end(self)

    def _answered(self) -> bool:
        return self.cycle is not None and self.cycle.response_complete

    def send_400_response(self, msg: str) -> None:
        """What the parser cannot read is a problem like any other."""
        if not self._refused:
            self._answer(Code.MALFORMED_HTTP, "expected an HTTP/1.1 request")

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

    def _refuse_head(self) -> None:
        detail = (
            f"the request line and headers are larger than {MAX_HEAD_BYTES} bytes, or more than "
            f"{MAX_HEADERS} headers"
        )
        self._refuse(Code.TOO_LARGE, detail)

    def _refuse(self, code: Code, detail: str) -> None:
        self._refused = True
        self._answer(code, detail)

    def _answer(self, code: Code, detail: str) -> None:
        status = HTTPStatus(PROBLEMS[code].status)
        request_id = uuid.uuid4().hex
        body = msgspec.json.encode(problem_body(code, detail, instance=request_id))
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {PROBLEM_MEDIA_TYPE}\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n"
            f"X-Request-Id: {request_id}\r\n"
        )
        if PROBLEMS[code].retryable:
            head += f"Retry-After: {USUAL_RETRY_AFTER_S}\r\n"
        # It gets no further than this, so the edge writes no line of it.
        access_log.info(
            "request",
            extra={
                "request_id": request_id,
                "status": status.value,
                "code": code.value,
                "detail": detail,
            },
        )
        self.transport.write(head.encode("ascii") + b"\r\n" + body)
        self._close()


class _Refused(Exception):
    """Ends the parser's work on a request that has its answer already."""


class _Config(uvicorn.Config):
    """uvicorn's, and the bounds and deadlines that the connections of a server share."""

    connections: Connections
    heads: Deadlines
    rests: Deadlines
    silences: Deadlines


class Server(uvicorn.Server):
    """Serves until `stop`; then takes nothing new, and ends once nothing is under way."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        gate: Gate,
        connections: Connections,
        on_started: Callable[[socket.socket], None],
        limits: ServerLimits = USUAL,
    ) -> None:
        config = _Config(
            app,
            http=BoundedProtocol,
            loop="uvloop",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=DISCONNECT_S,
        )
        config.connections = connections
        config.heads, config.rests = Deadlines(limits.head_s), Deadlines(limits.head_s)
        config.silences = Deadlines(limits.keep_alive_s)
        super().__init__(config)
        self._gate = gate
        self._drain_s = limits.drain_s
        self._on_started = on_started
        self._stop_by: float | None = None

    def stop(self) -> None:
        """Begin to stop; a second call ends the wait for what is under way."""
        if self._gate.closed:
            self.should_exit = True
        self._gate.close()
        self._stop_by = time.monotonic() + self._drain_s

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and sockets:
            self._on_started(sockets[0])

    async def on_tick(self, counter: int) -> bool:
        if self._stop_by is not None:
            idle = self._gate.under_way == 0
            self.should_exit = self.should_exit or idle or time.monotonic() > self._stop_by
        return await super().on_tick(counter)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the command line's business: it calls `stop`."""
        yield


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket with its address taken, not listening yet. Raises `OSError`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    bound.set_inheritable(False)
    return bound


def url_of(listening: socket.socket) -> str:
    """`http://host:port` of a bound socket."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
