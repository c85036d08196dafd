"""A route without a policy is no route: the application is not built."""

import pytest
from fastapi import APIRouter, Depends, FastAPI, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route

from tidegate_service.api.http.request.limits import Limits
from tidegate_service.api.http.request.requests import SCOPE_KEY, Gate, RequestState, context_of
from tidegate_service.api.routing.policies import (
    OnBody,
    OnTable,
    Public,
    RouteWithoutPolicy,
    require_policies,
)
from tidegate_service.app import application
from tidegate_service.core.access.roles import Role


async def answers(request: Request) -> Response:
    return PlainTextResponse("anything")


def with_route(**options: object) -> FastAPI:
    router = APIRouter()
    router.add_api_route("/inner", answers, **options)
    app = FastAPI(docs_url=None, redoc_url=None)
    app.include_router(router, prefix="/outer")
    return app


def test_one_policy_is_what_it_takes():
    app = with_route(dependencies=[Depends(Public())])
    require_policies(app.routes, but="/openapi.json")


@pytest.mark.parametrize(
    "dependencies",
    [
        [],
        [Depends(lambda: None)],
        [Depends(Public), Depends(lambda: None)],
        [Depends(Public()), Depends(OnBody(Role.READER))],
        [Depends(OnTable(Role.READER)), Depends(OnTable(Role.WRITER))],
    ],
)
def test_none_or_two_are_refused_by_the_path(dependencies):
    app = with_route(dependencies=dependencies)
    with pytest.raises(RouteWithoutPolicy, match="/inner"):
        require_policies(app.routes, but="/openapi.json")


@pytest.mark.parametrize(
    "route",
    [Route("/plain", answers), Mount("/mounted", app=PlainTextResponse("x"))],
    ids=["plain", "mounted"],
)
def test_what_cannot_have_one_is_refused(route):
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.router.routes.append(route)
    with pytest.raises(RouteWithoutPolicy, match="does not say who may call it"):
        require_policies(app.routes, but=None)


def test_the_application_is_built_only_with_them(monkeypatch):
    from tidegate_service.api import application as module
    from tidegate_service.api.routes import health

    router = APIRouter()
    router.add_api_route("/forgotten", answers)
    monkeypatch.setattr(health, "router", router)
    limits = Limits(max_requests=1, max_body_bytes=1, deadline_s=1, long_deadline_s=1)
    with pytest.raises(RouteWithoutPolicy, match="/forgotten"):
        module.build(limits=limits, gate=Gate())


def test_ours_has_them_all():
    app = application()
    require_policies(app.routes, but=app.openapi_url)


def test_the_world_is_not_for_a_request_that_no_policy_let_in():
    scope = {
        "type": "http",
        "app": application(),
        "path": "/x",
        "headers": [],
        SCOPE_KEY: RequestState(id="r"),
    }
    with pytest.raises(AssertionError, match="no policy let this request"):
        context_of(Request(scope))
