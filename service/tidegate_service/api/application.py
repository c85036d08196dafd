"""The HTTP application: routers, problems and the edge, without a world of its own."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.asyncexitstack import AsyncExitStackMiddleware
from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp

from tidegate_protocol.base.problems import Code
from tidegate_service.api.http.edge import Edge
from tidegate_service.api.http.problems.problems import (
    of_http_exception,
    of_service_error,
    of_validation,
)
from tidegate_service.api.http.problems.refusals import Refusals
from tidegate_service.api.http.readiness import Readiness
from tidegate_service.api.http.request.body_memory import memory_for_bodies
from tidegate_service.api.http.request.faces import UNITY_PREFIX
from tidegate_service.api.http.request.heads import is_proxied
from tidegate_service.api.http.request.limits import Limits
from tidegate_service.api.http.request.requests import PREFIX, Gate, state_of
from tidegate_service.api.openapi import describe
from tidegate_service.api.routes import (
    checkpoints,
    commits,
    forgotten,
    health,
    maintenance,
    metrics,
    scan,
    tables,
    transactions,
    vacuum,
)
from tidegate_service.api.routes.docs import docs_router
from tidegate_service.api.routing.policies import require_policies
from tidegate_service.api.routing.route import Shortcut
from tidegate_service.api.unity_catalog import classic, delta
from tidegate_service.core.access.tokens import Authenticator
from tidegate_service.core.context import Context
from tidegate_service.core.errors import ServiceError
from tidegate_service.core.maintenance.health import check_ready
from tidegate_service.core.observe.telemetry import SILENT, Telemetry

_PARAMETER = re.compile(r"\{\w+\}")


class Application(FastAPI):
    """FastAPI with our own description of itself, and with nothing around the edge."""

    _openapi_task: asyncio.Task[bytes] | None = None

    def setup(self) -> None:
        """Adds the route of the description. FastAPI's would make its bytes for each request."""
        assert self.openapi_url is not None
        self.add_route(self.openapi_url, self._answer_openapi, include_in_schema=False)

    def build_middleware_stack(self) -> ASGIApp:
        """FastAPI's without its outermost layers, which answer defects and bound bodies: the
        edge does both."""
        app: ASGIApp = AsyncExitStackMiddleware(self.router)
        app = ExceptionMiddleware(app, handlers=self.exception_handlers)
        for middleware, args, kwargs in reversed(self.user_middleware):
            app = middleware(app, *args, **kwargs)
        return app

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            self.openapi_schema = describe(self)
        return self.openapi_schema

    async def openapi_json(self) -> bytes:
        """The document as JSON. It is made once, in a thread: that takes a third of a second."""
        made = self._openapi_task
        if made is None or (made.done() and (made.cancelled() or made.exception() is not None)):
            made = self._openapi_task = asyncio.create_task(asyncio.to_thread(self._render_openapi))
        # It goes on for those who ask next where a caller leaves.
        return await asyncio.shield(made)

    def _render_openapi(self) -> bytes:
        return bytes(JSONResponse(self.openapi()).body)

    async def _answer_openapi(self, _: Request) -> Response:
        return Response(await self.openapi_json(), media_type=JSONResponse.media_type)


def build(*, limits: Limits, gate: Gate, telemetry: Telemetry = SILENT) -> Application:
    """The application. It answers requests once `attach` has given it a context."""
    app = Application(
        title="Tidegate",
        version=version("tidegate"),
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False, "logs": False, "operation_spans": False},
    )
    app.state.gate = gate
    app.state.readiness_kept_s = limits.server.readiness_kept_s
    app.state.max_body_bytes = limits.max_body_bytes
    app.state.max_stream_bytes = limits.max_stream_bytes
    app.state.max_stream_actions = limits.max_stream_actions
    app.state.body_memory = memory_for_bodies(limits.max_stream_bytes)
    app.state.refusals = Refusals(limits.max_requests)
    resources = (
        *(tables, commits, transactions, scan),
        *(maintenance, checkpoints, vacuum, forgotten),
    )
    for resource in resources:
        app.include_router(resource.router, prefix=PREFIX)
    for part in (delta, classic):
        app.include_router(part.router, prefix=UNITY_PREFIX)
    app.include_router(health.router)
    app.include_router(metrics.router)
    app.include_router(docs_router())
    handlers = {
        ServiceError: _service_error,
        RequestValidationError: _validation,
        HTTPException: _http_exception,
    }
    for error, handler in handlers.items():
        app.add_exception_handler(error, handler)
    # The document says how to ask, and nothing of what is there.
    require_policies(app.routes, but=app.openapi_url)
    app.add_middleware(Shortcut, routes=app.routes, handlers=handlers)
    app.add_middleware(Edge, limits=limits, gate=gate, telemetry=telemetry)
    return app


def attach(
    app: Application,
    context: Context,
    *,
    exposition: Callable[[], Awaitable[bytes]],
    authenticator: Authenticator | None,
) -> None:
    """Give the application the world it acts on, the text of `/metrics`, and who tells whose a
    token is; without that, everybody may do everything."""
    app.state.context = context
    app.state.readiness = Readiness(lambda: check_ready(context), kept_s=app.state.readiness_kept_s)
    app.state.authenticator = authenticator
    app.state.exposition = exposition


async def _service_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, ServiceError) or error.code is Code.INTERNAL_ERROR:
        # The edge logs a defect in full and keeps its inside from the client.
        raise error
    has_waited = True
    if error.code is Code.BACKPRESSURE:
        has_waited = await request.app.state.refusals.wait(state_of(request).principal)
    answer = of_service_error(state_of(request), error)
    if not (has_waited or is_proxied(request.scope)):
        answer.headers["connection"] = "close"
    return answer


async def _validation(request: Request, error: Exception) -> Response:
    if not isinstance(error, RequestValidationError):
        raise error
    return of_validation(state_of(request), error)


async def _http_exception(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    path = request.url.path
    if error.status_code == 405:
        # The router names the methods of the first route that it met, not of the path. The document
        # has those; it is not to be made on the event loop.
        await request.app.openapi_json()
        error.headers = {"Allow": ", ".join(_methods_of(request.app, path))}
    return of_http_exception(state_of(request), error, path)


def _methods_of(app: Application, path: str) -> list[str]:
    found = {
        method.upper()
        for template, methods in app.openapi()["paths"].items()
        if re.fullmatch(_PARAMETER.sub("[^/]+", template), path)
        for method in methods
    }
    return sorted(found) or ["GET"]
