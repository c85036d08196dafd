"""The outermost layer of every request, as plain ASGI: its id, its limits, its log line.

Whatever happens inside, a request that enters here ends in one answer (`exchange`), and an instance
that is stopping takes nothing new.
"""

from random import Random

from starlette.types import ASGIApp, Receive, Scope, Send

from tidegate_service.api.http.answered import HEALTH_PATHS
from tidegate_service.api.http.deadlines import Deadlines
from tidegate_service.api.http.exchange import Exchange
from tidegate_service.api.http.request.faces import face_of
from tidegate_service.api.http.request.heads import Headers, safe_id, trace_headers
from tidegate_service.api.http.request.limits import Limits
from tidegate_service.api.http.request.requests import Gate, RequestState
from tidegate_service.api.http.strangers import Lines
from tidegate_service.core.observe import correlation
from tidegate_service.core.observe.telemetry import SILENT, Telemetry


class Edge:
    """The ASGI application around the application."""

    def __init__(
        self, app: ASGIApp, *, limits: Limits, gate: Gate, telemetry: Telemetry = SILENT
    ) -> None:
        self._app = app
        self._limits = limits
        self._gate = gate
        self._lines = Lines(limits)
        self._telemetry = telemetry
        self._usual = Deadlines(limits.deadline_s)
        self._long = Deadlines(limits.long_deadline_s)
        # Seeded by the system; an id has to be another than all others, and no secret.
        self._ids = Random()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers: Headers = dict(reversed(scope["headers"]))
        exchange = Exchange(
            scope,
            receive,
            send,
            limits=self._limits,
            gate=self._gate,
            lines=self._lines,
            max_bytes=self._limits.max_bytes(headers),
            usual=self._usual,
            long=self._long,
            state=RequestState(
                id=safe_id(headers, b"x-request-id") or f"{self._ids.getrandbits(128):032x}",
                application_id=safe_id(headers, b"x-spark-application-id"),
                headers=headers,
                face=face_of(scope["method"], scope["path"]),
            ),
        )
        with self._telemetry.request(trace_headers(headers)) as trace_id:
            exchange.state.trace_id = trace_id
            correlation.enter(exchange.state)
            await self._taken(scope, headers, exchange)

    async def _taken(self, scope: Scope, headers: Headers, exchange: Exchange) -> None:
        counted = scope["path"] not in HEALTH_PATHS
        line = self._lines.of(scope, headers, self._limits)
        self._gate.under_way += counted
        try:
            if self._gate.closed and counted:
                await exchange.refuse_closed()
            elif line is None and not self._gate.count(exchange.state, self._limits.max_requests):
                await exchange.refuse_crowded()
            elif counted and (wrong_host := exchange.wrong_host()) is not None:
                await exchange.refuse(wrong_host)
            elif exchange.announces_too_much(headers):
                await exchange.refuse(exchange.too_large())
            else:
                await exchange.run(self._app, line)
        finally:
            self._gate.under_way -= counted
            exchange.leave()
            exchange.log(self._telemetry)
