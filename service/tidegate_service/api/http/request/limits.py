"""What bounds a request before it reaches a route."""

from dataclasses import dataclass, field

from tidegate_service.api.http.request.heads import Headers
from tidegate_service.api.http.request.hosts import Hosts
from tidegate_service.api.http.request.requests import NDJSON

_NDJSON = NDJSON.encode("ascii")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """How long a server waits for its callers. A request's head comes within `head_s`; so does the
    rest of a body whose request is answered already. A connection may be idle for `keep_alive_s`,
    longer than clients and proxies keep one. What is written to it is taken within `send_s`, but
    for what the system keeps for it. Requests under way have `drain_s` once the instance is told
    to stop.

    Of requests that are nobody's, `strangers` begin in each `stranger_turn_s`: a tenth of what the
    event loop could answer. An answer of `/readyz` stands for `readiness_kept_s`: finding out takes
    a database connection and a write to the store, and anybody may ask."""

    head_s: float = 10.0
    keep_alive_s: float = 75.0
    send_s: float = 30.0
    drain_s: float = 8.0
    strangers: int = 16
    stranger_turn_s: float = 0.05
    readiness_kept_s: float = 1.0


USUAL = ServerLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """`max_requests` are under way at a time, called by one of `hosts`; `deadline_s` bounds the
    wait for an answer, and then that for each MiB of it, `long_deadline_s` the wait for a call
    which reads a whole log, and an answer as a whole. A body of NDJSON has bounds of its own; all
    that are large together may hold `max_stream_bytes`. `tokens` says whether callers have to have
    one."""

    max_requests: int
    max_body_bytes: int
    deadline_s: float
    long_deadline_s: float
    hosts: Hosts = field(default_factory=Hosts)
    max_stream_bytes: int = 1024**3
    max_stream_actions: int = 1_000_000
    max_connections: int = 4_000
    tokens: bool = False
    server: ServerLimits = USUAL

    def max_bytes(self, headers: Headers) -> int:
        """How large the body of a request with these headers may be."""
        is_stream = headers.get(b"content-type", b"").lower().startswith(_NDJSON)
        return self.max_stream_bytes if is_stream else self.max_body_bytes
