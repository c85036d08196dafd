"""The kind of route that every resource has, and how a request finds it.

FastAPI's own way from a path to an endpoint costs 170 us of CPU: it asks every router for the route
and solves the dependencies anew for each request. A `Route` is declared and described like any
other. What its endpoint needs is worked out when it is declared; at a request its policy and its
endpoint are run, and nothing else is looked for.
"""

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from fastapi import Request
from fastapi.dependencies.utils import request_params_to_args
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute, iter_route_contexts
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from tidegate_service.api.http.request.faces import UNITY_PREFIX
from tidegate_service.api.routing.parameters import TableReference
from tidegate_service.api.routing.policies import OnTable, Policy

Handlers = Mapping[type[Exception], Callable[[Request, Exception], Awaitable[Response]]]


class Route(APIRoute):
    """Of `async def endpoint(...) -> Response` under one policy.

    The endpoint may take a `request: Request`, a `table` by a `TableReference`, and parameters of
    the path and the query. Raises `TypeError` for one that takes anything else: `api.bodies` reads
    bodies.
    """

    _policy: Any
    _asks_of_table: bool
    _table: TableReference | None
    _takes_request: bool

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Called once the route has been described; FastAPI's own routers call what it gives."""
        needs: list[Any] = [dependency.call for dependency in self.dependant.dependencies]
        policies = [call for call in needs if isinstance(call, Policy)]
        others = [call for call in needs if not isinstance(call, Policy)]
        refs = [call for call in others if isinstance(call, TableReference)]
        own = self.dependant
        names = {field.name for field in (*own.path_params, *own.query_params)}
        taken = set(inspect.signature(self.endpoint).parameters) - names
        if (
            len(policies) != 1
            or len(others) > len(refs)
            or (isinstance(policies[0], OnTable) and not others)
            or taken - {"request"} != ({"table"} if others else set())
            or own.header_params
            or own.cookie_params
            or own.body_params
        ):
            raise TypeError(
                f"the route {self.path} should take a request, a TableRef and parameters of the "
                "path and the query, under one policy, and nothing else"
            )
        (self._policy,) = policies
        self._asks_of_table = isinstance(self._policy, OnTable)
        self._table = refs[0] if refs else None
        self._takes_request = "request" in taken
        return self.answer

    async def answer(self, request: Request) -> Response:
        """The endpoint's answer. Raises what the policy and the endpoint raise, and then
        `RequestValidationError` for parameters that are not as declared."""
        path = request.scope["path_params"]
        values: dict[str, Any] = {"request": request} if self._takes_request else {}
        if self._table is not None:
            values["table"] = self._table.of(request, path)
        if self._asks_of_table:
            await self._policy(request, values["table"])
        else:
            await self._policy(request)
        own = self.dependant
        if own.path_params or own.query_params:
            of_path, errors = request_params_to_args(own.path_params, path)
            of_query, more = request_params_to_args(own.query_params, request.query_params)
            if errors or more:
                raise RequestValidationError([*errors, *more])
            values |= of_path | of_query
        response: Response = await self.endpoint(**values)
        return response


def _path_of(scope: Scope) -> tuple[str, bool]:
    """The path to be matched, and whether its parts are to be decoded. Clients of Unity Catalog's
    API send names with slashes in them, which are no slashes of the path."""
    path: str = scope["path"]
    raw = scope.get("raw_path")
    if raw is None or not path.startswith(UNITY_PREFIX):
        return path, False
    return raw.decode("latin-1"), True


class Shortcut:
    """Takes requests to their `Route`, and leaves what is none's to the application.

    Paths and methods are matched by what FastAPI made of them. `handlers` answer the errors that
    routes raise.
    """

    def __init__(self, app: ASGIApp, *, routes: Sequence[BaseRoute], handlers: Handlers) -> None:
        self._app = app
        self._handlers = handlers
        self._routes: dict[str, list[tuple[Any, Route]]] = {}
        for context in iter_route_contexts(routes):
            route = context.original_route
            if isinstance(route, Route):
                for method in context.methods or ():
                    found = self._routes.setdefault(method, [])
                    found.append((context.path_regex.match, route))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            path, is_raw = _path_of(scope)
            for match, route in self._routes.get(scope["method"], ()):
                found = match(path)
                if found is not None:
                    parts = found.groupdict()
                    if is_raw:
                        parts = {name: unquote(part) for name, part in parts.items()}
                    scope["route"], scope["path_params"] = route, parts
                    response = await self._answer(route, Request(scope, receive, send))
                    await response(scope, receive, send)
                    return
        await self._app(scope, receive, send)

    async def _answer(self, route: Route, request: Request) -> Response:
        try:
            return await route.answer(request)
        except Exception as error:
            for kind in type(error).__mro__:
                handler = self._handlers.get(kind)
                if handler is not None:
                    return await handler(request, error)
            raise
