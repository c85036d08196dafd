"""Routes that are found and answered without FastAPI's own way, which costs 170 us of CPU.

FastAPI asks every router for the route and solves its dependencies anew for each request. A
`LeanRoute` is declared and described like any other, its policy and its path parameter included;
at a request these and the endpoint are run, and nothing else is looked for.
"""

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from fastapi import Request
from fastapi.routing import APIRoute, iter_route_contexts
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from tidegate_service.api.routes.parameters import table_ref
from tidegate_service.api.routes.policies import OnTable
from tidegate_service.core.errors import ServiceError

Refuse = Callable[[Request, Exception], Awaitable[Response]]


class LeanRoute(APIRoute):
    """Of `async def endpoint(request: Request, table: TableRef) -> Response`, under one policy
    `OnTable`. Raises `TypeError` for any other, which would need FastAPI."""

    _policy: OnTable

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Called once the route has been described; FastAPI's own routers call what it gives."""
        needs = [dependency.call for dependency in self.dependant.dependencies]
        policies = [call for call in needs if isinstance(call, OnTable)]
        others = [call for call in needs if not isinstance(call, OnTable)]
        taken = list(inspect.signature(self.endpoint).parameters)
        if len(policies) != 1 or others != [table_ref] or taken != ["request", "table"]:
            raise TypeError(
                f"the route {self.path} should take a request and a TableRef under one OnTable, "
                "and need nothing else, to be a LeanRoute"
            )
        (self._policy,) = policies
        return self.answer

    async def answer(self, request: Request) -> Response:
        """Raises what the policy and the endpoint raise."""
        table = await table_ref(request, request.scope["path_params"]["table"])
        await self._policy(request, table)
        response: Response = await self.endpoint(request, table)
        return response


class Shortcut:
    """Takes the requests of lean routes to them, and leaves all others to the application.

    Paths and methods are matched by what FastAPI made of them. `refuse` is the application's
    handler of a `ServiceError`.
    """

    def __init__(self, app: ASGIApp, *, routes: Sequence[BaseRoute], refuse: Refuse) -> None:
        self._app = app
        self._refuse = refuse
        self._routes = [
            (context.path_regex.match, context.methods or set(), context.original_route)
            for context in iter_route_contexts(routes)
            if isinstance(context.original_route, LeanRoute)
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            for match, methods, route in self._routes:
                found = match(scope["path"])
                if found is not None and scope["method"] in methods:
                    scope["route"], scope["path_params"] = route, found.groupdict()
                    response = await self._answer(route, Request(scope, receive, send))
                    await response(scope, receive, send)
                    return
        await self._app(scope, receive, send)

    async def _answer(self, route: LeanRoute, request: Request) -> Response:
        try:
            return await route.answer(request)
        except ServiceError as error:
            return await self._refuse(request, error)
