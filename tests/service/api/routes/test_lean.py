"""Lean routes: what they may need, and what is theirs."""

from typing import Annotated

import pytest
from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from tidegate_service.api.http.requests import SCOPE_KEY, RequestState
from tidegate_service.api.routes.lean import LeanRoute, Shortcut
from tidegate_service.api.routes.parameters import TableRef
from tidegate_service.api.routes.policies import OnTable, Public, policy_of
from tidegate_service.app import application
from tidegate_service.core.access.roles import ANYBODY, Role
from tidegate_service.core.errors import NotFound, ServiceError

WRITER = Depends(OnTable(Role.WRITER))


async def lean(request: Request, table: TableRef) -> Response:
    return PlainTextResponse(f"lean {table}")


async def asks_more(
    request: Request, table: TableRef, limit: Annotated[int, Query()] = 1
) -> Response:
    return PlainTextResponse("more")


async def asks_less(request: Request) -> Response:
    return PlainTextResponse("less")


def router_of(endpoint: object, *dependencies: object) -> APIRouter:
    router = APIRouter(route_class=LeanRoute)
    router.add_api_route("/{table}/x", endpoint, methods=["POST"], dependencies=dependencies)
    return router


class TestDeclaring:
    def test_a_table_under_one_policy_on_it_is_what_it_takes(self):
        (route,) = router_of(lean, WRITER).routes
        assert policy_of(route) == OnTable(Role.WRITER)

    @pytest.mark.parametrize(
        ("endpoint", "dependencies"),
        [
            (lean, []),
            (lean, [Depends(Public())]),
            (lean, [WRITER, Depends(OnTable(Role.READER))]),
            (lean, [WRITER, Depends(lambda: None)]),
            (asks_more, [WRITER]),
            (asks_less, [WRITER]),
        ],
    )
    def test_whatever_needs_more_is_refused_by_its_path(self, endpoint, dependencies):
        with pytest.raises(TypeError, match=r"/\{table\}/x should take a request and a TableRef"):
            router_of(endpoint, *dependencies)


class TestShortcut:
    """Who answers: the lean route, or the application behind it."""

    async def answer(self, method: str, path: str) -> str:
        async def behind(scope: Scope, receive: Receive, send: Send) -> None:
            await PlainTextResponse("behind")(scope, receive, send)

        async def refuse(request: Request, error: Exception) -> Response:
            assert isinstance(error, ServiceError)
            return PlainTextResponse(f"refused {error.code}")

        app = application()
        app.state.authenticator = None
        shortcut = Shortcut(behind, routes=router_of(lean, WRITER).routes, refuse=refuse)
        sent: list[bytes] = []

        async def send(message: dict[str, object]) -> None:
            sent.append(message.get("body", b""))

        scope = {
            "type": "http",
            "app": app,
            "method": method,
            "path": path,
            "headers": [],
            SCOPE_KEY: RequestState(id="r"),
        }
        await shortcut(scope, None, send)
        return b"".join(sent).decode()

    @pytest.mark.anyio
    @pytest.mark.parametrize(
        ("method", "path", "expected"),
        [
            ("POST", "/main.air.flights/x", "lean main.air.flights"),
            ("GET", "/main.air.flights/x", "behind"),
            ("post", "/main.air.flights/x", "behind"),
            ("POST", "/main.air.flights/x/", "behind"),
            ("POST", "/a/b/x", "behind"),
            ("POST", "//x", "behind"),
            ("POST", "/main.air.flights", "behind"),
            ("POST", "/main.air.\u00e9/x", f"refused {NotFound.code}"),
            ("POST", "/main.air.\0/x", f"refused {NotFound.code}"),
        ],
    )
    async def test_only_its_method_and_path_are_the_routes(self, method, path, expected):
        assert await self.answer(method, path) == expected

    def test_anybody_may_write_where_nobody_is_asked(self):
        """What the cases above rest on."""
        assert ANYBODY.may(Role.WRITER, "main.air.flights")
