"""The outermost layer of every request, as plain ASGI: its id, its limits, its log line.

Whatever happens inside, a request that enters here ends in one answer: a defect becomes a 500
problem, an overrun deadline a 503, and an instance that is stopping takes nothing new.
"""

import asyncio
import logging
import re
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tidegate_protocol.problems import Code
from tidegate_service.api.hosts import Hosts
from tidegate_service.api.problems import AnswerBrokenOff, of_service_error, problem
from tidegate_service.api.rendering import PREFIX
from tidegate_service.api.requests import SCOPE_KEY, Gate, RequestState
from tidegate_service.core import correlation
from tidegate_service.core.errors import Refused, root_cause
from tidegate_service.core.telemetry import SILENT, Telemetry

access_log = logging.getLogger("tidegate.access")
defect_log = logging.getLogger("tidegate.defect")

HEALTH_PATHS = frozenset({"/healthz", "/readyz"})
_ROUTINE_PATHS = HEALTH_PATHS | {"/metrics"}

CLIENT_GONE = 499
"""What the log shows for a client that left before its answer; nobody receives it."""

_SAFE_ID = re.compile(rb"[A-Za-z0-9._-]{1,128}\Z")
_QUIET_HEADERS = [(b"x-content-type-options", b"nosniff")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """`max_requests` are under way at a time, called by one of `hosts`; `deadline_s` bounds the
    wait for an answer, and each wait for a slow reader of one, `long_deadline_s` that for a call
    which reads a whole log."""

    max_requests: int
    max_body_bytes: int
    deadline_s: float
    long_deadline_s: float
    hosts: Hosts = field(default_factory=Hosts)


class Edge:
    """The ASGI application around the application."""

    def __init__(
        self, app: ASGIApp, *, limits: Limits, gate: Gate, telemetry: Telemetry = SILENT
    ) -> None:
        self._app = app
        self._limits = limits
        self._gate = gate
        self._telemetry = telemetry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = _Exchange(scope, receive, send, self._limits)
        with self._telemetry.request(_trace_headers(scope)) as trace_id:
            exchange.state.trace_id = trace_id
            correlation.enter(exchange.state)
            await self._taken(scope, exchange)

    async def _taken(self, scope: Scope, exchange: "_Exchange") -> None:
        counted = scope["path"] not in HEALTH_PATHS
        self._gate.under_way += counted
        try:
            if self._gate.closed and counted:
                await exchange.refuse_closed()
            elif self._gate.under_way > self._limits.max_requests:
                await exchange.refuse_crowded()
            elif counted and (wrong_host := exchange.wrong_host()) is not None:
                await exchange.refuse(wrong_host)
            elif exchange.announces_too_much():
                await exchange.refuse(exchange.too_large())
            else:
                await exchange.run(self._app)
        finally:
            self._gate.under_way -= counted
            exchange.leave()
            exchange.note(self._telemetry)


class _Exchange:
    """One request and its answer."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, limits: Limits) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._limits = limits
        self._started = time.perf_counter()
        self._received = 0
        self._status: int | None = None
        self._complete = False
        self._extend: Callable[[], None] = _nothing
        self.state = RequestState(
            id=_safe_id(scope, b"x-request-id") or uuid.uuid4().hex,
            application_id=_safe_id(scope, b"x-spark-application-id"),
        )
        scope[SCOPE_KEY] = self.state

    async def run(self, app: ASGIApp) -> None:
        try:
            async with asyncio.timeout(self._limits.deadline_s) as deadline:
                loop = asyncio.get_running_loop()
                self._extend = lambda: deadline.reschedule(loop.time() + self._limits.deadline_s)
                self.state.take_long = lambda: deadline.reschedule(
                    loop.time() + self._limits.long_deadline_s
                )
                await app(self._scope, self.receive, self.send)
        except TimeoutError as error:
            if deadline.expired():
                await self._overrun()
            else:
                await self._defect(error)
        except AnswerBrokenOff as broken:
            self.state.problem, self.state.detail = broken.cause.code, broken.cause.detail
            self.state.cause = root_cause(broken.cause)
        except ClientDisconnect:
            self._status = CLIENT_GONE
        except asyncio.CancelledError:
            # Only a stopping instance cancels a request, when it can wait no longer.
            if self._status is None:
                await self._cut_off()
            raise
        except Exception as error:
            await self._defect(error)

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._received += len(message.get("body", b""))
            if self._received > self._limits.max_body_bytes:
                raise self.too_large()
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            message["headers"] = [
                *message["headers"],
                *_QUIET_HEADERS,
                (b"x-request-id", self.state.id.encode("ascii")),
            ]
        elif message["type"] == "http.response.body":
            self._complete = not message.get("more_body", False)
            # An answer that has begun is bounded by its reader's pace, not as a whole.
            self._extend()
        await self._send(message)

    def leave(self) -> None:
        """Give back what the request held while it was under way."""
        for give_back in self.state.at_end:
            give_back()

    def announces_too_much(self) -> bool:
        length = dict(self._scope["headers"]).get(b"content-length", b"")
        # Twenty digits are more than any 64-bit length has.
        return length.isdigit() and int(length[:20]) > self._limits.max_body_bytes

    def wrong_host(self) -> Refused | None:
        """Why the request is not for this service, if it is not."""
        try:
            self._limits.hosts.check(self._scope)
        except Refused as refused:
            return refused
        return None

    async def refuse(self, refused: Refused) -> None:
        await self._answer(of_service_error(self.state, refused))

    async def refuse_closed(self) -> None:
        await self._answer(
            problem(
                self.state,
                Code.SHUTTING_DOWN,
                "this instance is stopping and takes nothing new; nothing was done",
                headers={"Connection": "close"},
            )
        )

    async def refuse_crowded(self) -> None:
        limit = self._limits.max_requests
        detail = f"{limit} requests are under way, as many as are taken; nothing was done"
        await self._answer(problem(self.state, Code.BACKPRESSURE, detail))

    async def _overrun(self) -> None:
        waited = f"there was no answer within {self._limits.deadline_s:g} s"
        if self.state.may_land:
            code = Code.COMMIT_STATE_UNKNOWN
            detail = f"{waited}; send the same transaction again, or ask for its status"
        else:
            code = Code.DEADLINE_EXCEEDED
            detail = f"{waited}; it may have been done all the same: ask, or send it again"
        if self._status is None:
            await self._answer(problem(self.state, code, detail))
        else:
            # The server closes the connection of an answer that breaks off.
            self.state.problem, self.state.detail = code, "the reader of the answer was too slow"

    async def _cut_off(self) -> None:
        code = Code.COMMIT_STATE_UNKNOWN if self.state.may_land else Code.SHUTTING_DOWN
        detail = (
            "this instance stopped before there was an answer; it may have been done all the "
            "same: send the same request again, to another instance or after the restart"
        )
        await self._answer(problem(self.state, code, detail, headers={"Connection": "close"}))

    async def _defect(self, error: Exception) -> None:
        error_id = uuid.uuid4().hex
        defect_log.error(
            "unhandled exception",
            exc_info=error,
            extra={"error_id": error_id},
        )
        if self._status is None:
            detail = "the service met a defect of its own; its log has it under the error id"
            if self.state.may_land:
                detail += "; whether the transaction landed is told by sending it again"
            await self._answer(problem(self.state, Code.INTERNAL_ERROR, detail, error_id=error_id))
        else:
            self.state.problem = Code.INTERNAL_ERROR

    async def _answer(self, response: Response) -> None:
        # Outside the deadline: it is over, or was never entered.
        self._extend = _nothing
        await response(self._scope, self._receive, self.send)

    def too_large(self) -> Refused:
        return Refused(
            f"the body is larger than {self._limits.max_body_bytes} bytes",
            code=Code.TOO_LARGE,
            hint="split the work into several transactions",
        )

    def note(self, telemetry: Telemetry) -> None:
        """The request's metrics, and the one line that says what came of it."""
        seconds = time.perf_counter() - self._started
        route = _route_of(self._scope)
        method, status = self._scope["method"], self._status or CLIENT_GONE
        telemetry.answered(method=method, route=route, status=status, seconds=seconds)
        broken = self._status is not None and self._status != CLIENT_GONE and not self._complete
        routine = self._scope["path"] in _ROUTINE_PATHS and self.state.problem is None
        access_log.log(
            logging.DEBUG if routine else logging.INFO,
            "request",
            extra={
                **self.state.fields(),
                "principal": self.state.principal and self.state.principal.name,
                "method": method,
                "route": route,
                "path": self._scope["path"],
                "status": status,
                "duration_ms": round(seconds * 1000, 1),
                "code": self.state.problem and self.state.problem.value,
                "detail": self.state.detail,
                "cause": self.state.cause,
                "broken_off": True if broken else None,
            },
        )


def _nothing() -> None:
    pass


def _safe_id(scope: Scope, header: bytes) -> str | None:
    """The client's id, if it is one that no log or header can be hurt by."""
    given: bytes = dict(scope["headers"]).get(header, b"")
    return given.decode("ascii") if _SAFE_ID.match(given) else None


def _route_of(scope: Scope) -> str | None:
    """The template of the route that took the request, as the OpenAPI document has it."""
    template: str | None = getattr(scope.get("route"), "path", None)
    if template is None or template.startswith(PREFIX):
        return template
    # A route knows its path within its router, not the prefix that the router was given.
    return PREFIX + template if scope["path"].startswith(f"{PREFIX}/") else template


def _trace_headers(scope: Scope) -> dict[str, str]:
    """The W3C trace context that the client sent."""
    return {
        name.decode("ascii"): value.decode("latin-1")
        for name, value in scope["headers"]
        if name in (b"traceparent", b"tracestate")
    }
