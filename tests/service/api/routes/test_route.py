"""Routes: what they may need, and what is theirs."""

from typing import Annotated

import pytest
from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.exceptions import RequestValidationError
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from tidegate_service.api.http.request.requests import SCOPE_KEY, RequestState
from tidegate_service.api.routing.parameters import TableRef
from tidegate_service.api.routing.policies import OnTable, Public, policy_of
from tidegate_service.api.routing.route import Route, Shortcut
from tidegate_service.app import application
from tidegate_service.core.access.roles import ANYBODY, Role
from tidegate_service.core.errors import NotFound, ServiceError

WRITER = Depends(OnTable(Role.WRITER))


async def one(request: Request, table: TableRef) -> Response:
    return PlainTextResponse(f"one {table}")


async def some(
    request: Request, table: TableRef, limit: Annotated[int, Query(ge=1)] = 1
) -> Response:
    return PlainTextResponse(f"{limit} of {table}")


async def nothing() -> Response:
    return PlainTextResponse("nothing")


async def of_a_body(request: Request, table: TableRef, body: dict[str, int]) -> Response:
    return PlainTextResponse("more")


async def of_a_head(request: Request, table: TableRef, etag: Annotated[str, Header()]) -> Response:
    return PlainTextResponse("more")


def router_of(endpoint: object, *dependencies: object) -> APIRouter:
    router = APIRouter(route_class=Route)
    router.add_api_route("/{table}/x", endpoint, methods=["POST"], dependencies=dependencies)
    return router


class TestDeclaring:
    def test_it_is_of_one_policy(self):
        (route,) = router_of(some, WRITER).routes
        assert policy_of(route) == OnTable(Role.WRITER)

    @pytest.mark.parametrize(
        ("endpoint", "dependencies"),
        [
            (one, []),
            (one, [WRITER, Depends(OnTable(Role.READER))]),
            (one, [WRITER, Depends(lambda: None)]),
            (nothing, [WRITER]),
            (of_a_body, [WRITER]),
            (of_a_head, [WRITER]),
        ],
    )
    def test_whatever_needs_more_is_refused_by_its_path(self, endpoint, dependencies):
        with pytest.raises(TypeError, match=r"/\{table\}/x should take a request, a TableRef"):
            router_of(endpoint, *dependencies)


class TestShortcut:
    """Who answers: the route, or the application behind it."""

    async def answer(
        self, method: str, path: str, *, query: str = "", router: APIRouter | None = None
    ) -> str:
        async def behind(scope: Scope, receive: Receive, send: Send) -> None:
            await PlainTextResponse("behind")(scope, receive, send)

        async def refuse(request: Request, error: Exception) -> Response:
            assert isinstance(error, ServiceError)
            return PlainTextResponse(f"refused {error.code}")

        async def not_as_declared(request: Request, error: Exception) -> Response:
            assert isinstance(error, RequestValidationError)
            return PlainTextResponse(f"refused {error.errors()[0]['loc']}")

        app = application()
        app.state.authenticator = None
        routes = (router or router_of(one, WRITER)).routes
        shortcut = Shortcut(
            behind,
            routes=routes,
            handlers={ServiceError: refuse, RequestValidationError: not_as_declared},
        )
        sent: list[bytes] = []

        async def send(message: dict[str, object]) -> None:
            sent.append(message.get("body", b""))

        scope = {
            "type": "http",
            "app": app,
            "method": method,
            "path": path,
            "query_string": query.encode(),
            "headers": [],
            SCOPE_KEY: RequestState(id="r"),
        }
        await shortcut(scope, None, send)
        return b"".join(sent).decode()

    @pytest.mark.anyio
    @pytest.mark.parametrize(
        ("method", "path", "expected"),
        [
            ("POST", "/main.air.flights/x", "one main.air.flights"),
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

    @pytest.mark.anyio
    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("", "1 of main.air.flights"),
            ("limit=7", "7 of main.air.flights"),
            ("limit=0", "refused ('query', 'limit')"),
            ("limit=x", "refused ('query', 'limit')"),
        ],
    )
    async def test_parameters_are_as_declared(self, query, expected):
        router = router_of(some, WRITER)
        found = await self.answer("POST", "/main.air.flights/x", query=query, router=router)
        assert found == expected

    @pytest.mark.anyio
    async def test_an_error_that_nothing_handles_is_raised(self):
        async def breaks(request: Request, table: TableRef) -> Response:
            raise KeyError(table)

        with pytest.raises(KeyError):
            await self.answer("POST", "/a.b.c/x", router=router_of(breaks, WRITER))

    @pytest.mark.anyio
    async def test_an_endpoint_may_need_nothing(self):
        router = router_of(nothing, Depends(Public()))
        assert await self.answer("POST", "/a.b.c/x", router=router) == "nothing"

    def test_anybody_may_write_where_nobody_is_asked(self):
        """What the cases above rest on."""
        assert ANYBODY.may(Role.WRITER, "main.air.flights")
