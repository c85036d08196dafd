"""What is recorded of a request that has ended: its metrics, and its line of the log."""

import logging
import time

from msgspec import Struct
from starlette.types import Scope

from tidegate_service.api.http.request.faces import UNITY_PREFIX
from tidegate_service.api.http.request.requests import PREFIX, RequestState
from tidegate_service.core.observe.telemetry import Telemetry

access_log = logging.getLogger("tidegate.access")

HEALTH_PATHS = frozenset({"/healthz", "/readyz"})
METRICS_PATH = "/metrics"
_ROUTINE_PATHS = HEALTH_PATHS | {METRICS_PATH}

# What every record of these lines has. A logger finds out anew for each of its records from where
# it is called, in which process and thread, and tells nobody who reads JSON.
_RECORDS = {
    level: vars(logging.LogRecord(access_log.name, level, __file__, 0, "", (), None))
    for level in (logging.DEBUG, logging.INFO)
}

MAX_PATH = 1024
"""Characters of a path in a line of the log; no table's is as long."""
CLIENT_GONE = 499
"""What the log shows for a client that left before its answer; nobody receives it."""


class AccessLine(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the log says of a request; `logs` writes it as it is."""

    event: str
    request_id: str
    transaction_id: str | None = None
    table: str | None = None
    application_id: str | None = None
    trace_id: str | None = None
    principal: str | None = None
    method: str
    route: str | None = None
    path: str
    status: int
    duration_ms: float
    code: str | None = None
    detail: str | None = None
    cause: str | None = None
    broken_off: bool | None = None


def answered(
    scope: Scope,
    state: RequestState,
    telemetry: Telemetry,
    *,
    status: int | None,
    complete: bool,
    seconds: float,
) -> None:
    """Take note of a request that took so long; without a status, its client left before it had
    one, and an answer that is not complete was broken off."""
    route, method, path = _route_of(scope), scope["method"], scope["path"]
    broken = status is not None and status != CLIENT_GONE and not complete
    status = status or CLIENT_GONE
    telemetry.answered(method=method, route=route, status=status, seconds=seconds)
    routine = path in _ROUTINE_PATHS and state.problem is None
    level = logging.DEBUG if routine else logging.INFO
    if not access_log.isEnabledFor(level):
        return
    line = AccessLine(
        event="request",
        request_id=state.id,
        transaction_id=state.transaction_id,
        table=state.table,
        application_id=state.application_id,
        trace_id=state.trace_id,
        principal=None if state.principal is None else state.principal.name,
        method=method,
        route=route,
        path=path[:MAX_PATH],
        status=status,
        duration_ms=round(seconds * 1000, 1),
        code=None if state.problem is None else state.problem.value,
        detail=state.detail,
        cause=state.cause,
        broken_off=True if broken else None,
    )
    record = logging.LogRecord.__new__(logging.LogRecord)
    record.__dict__ = {**_RECORDS[level], "msg": line, "created": time.time()}
    access_log.handle(record)


def _route_of(scope: Scope) -> str | None:
    """The template of the route that took the request, as the OpenAPI document has it."""
    template: str | None = getattr(scope.get("route"), "path", None)
    if template is None:
        return None
    # A route knows its path within its router, not the prefix that the router was given.
    for prefix in (PREFIX, UNITY_PREFIX):
        if scope["path"].startswith(f"{prefix}/"):
            return template if template.startswith(prefix) else prefix + template
    return template
