"""What each route asks of its caller. A route declares one policy, and the policy enforces it:

    dependencies=[Depends(OnTable(Role.READER))]

`require_policies` refuses an application with a route that has none, and `context_of` gives the
world only to a request whose policy was met, so neither can be forgotten quietly.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fastapi import Request
from fastapi.routing import APIRoute, iter_route_contexts
from starlette.routing import BaseRoute

from tidegate_service.api.http.request.heads import address_of
from tidegate_service.api.http.request.requests import authenticator_of, gate_of, state_of, world_of
from tidegate_service.api.routing.parameters import TableRef
from tidegate_service.core.access.roles import ANYBODY, Caller, Principal, Role, share_of
from tidegate_service.core.access.tokens import Authenticator
from tidegate_service.core.errors import Forbidden, Unauthenticated
from tidegate_service.core.tables.lookup import find_head, no_such_table

_STRANGER = Principal(name="unknown", grants=())
_BEARER = re.compile(r"bearer +([A-Za-z0-9._~+/=-]+) *\Z", re.IGNORECASE)


class RouteWithoutPolicy(Exception):
    """A route does not say who may call it; the message names it."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Base of the policies."""


@dataclass(frozen=True, slots=True)
class Public(Policy):
    """Anybody may call it: it shows nothing of any table."""

    async def __call__(self, request: Request) -> None:
        _let_in(request, _STRANGER)


@dataclass(frozen=True, slots=True)
class OnTable(Policy):
    """The role on the table of the path. Who may not read a table is answered as if there were
    none; who may read it learns which role is missing."""

    role: Role

    async def __call__(self, request: Request, table: TableRef) -> None:
        principal = await _authenticated(request)
        name = table
        if "." not in table and not principal.may_everywhere(self.role):
            # An id: rights are on names, and the index has the table's.
            theirs = world_of(request).called_by(Caller(principal=principal))
            name = (await find_head(theirs, table)).name
        if not principal.may(self.role, name):
            if not principal.may(Role.READER, name):
                raise no_such_table(table)
            _require(principal, self.role, name)
        _let_in(request, principal)


@dataclass(frozen=True, slots=True)
class OnBody(Policy):
    """The role on whatever the body names. Here, before the body is read, that is the role on
    anything at all; the route then calls `authorize` for what it has read."""

    role: Role

    async def __call__(self, request: Request) -> None:
        principal = await _authenticated(request)
        if not principal.may_somewhere(self.role):
            raise Forbidden(f"{_who(principal)} is no {self.role} of anything")


@dataclass(frozen=True, slots=True)
class Somewhere(Policy):
    """The role on anything: the use case shows each caller what is its own."""

    role: Role

    async def __call__(self, request: Request) -> None:
        principal = await _authenticated(request)
        if not principal.may_somewhere(self.role):
            raise Forbidden(f"{_who(principal)} is no {self.role} of anything")
        _let_in(request, principal)


@dataclass(frozen=True, slots=True)
class Everywhere(Policy):
    """The role on everything, for what is told of all tables together."""

    role: Role

    async def __call__(self, request: Request) -> None:
        principal = await _authenticated(request)
        if not principal.may_everywhere(self.role):
            raise Forbidden(f"{_who(principal)} is no {self.role} of everything ('*')")
        _let_in(request, principal)


def authorize(request: Request, role: Role, table: str) -> None:
    """The second half of `OnBody`: the role on the table of this name, which need not exist.
    Raises `Forbidden`, whether there is such a table or not."""
    principal = state_of(request).principal
    if principal is None:
        raise AssertionError("authorize is for routes whose policy is OnBody")
    _require(principal, role, table)
    _let_in(request, principal)


def require_policies(routes: Sequence[BaseRoute], *, but: str | None) -> None:
    """Raise `RouteWithoutPolicy` unless every route has exactly one, but for the one path."""
    for route in _all_routes(routes):
        path = getattr(route, "path", repr(route))
        if path != but and policy_of(route) is None:
            raise RouteWithoutPolicy(
                f"the route {path} does not say who may call it; declare exactly one policy of "
                "tidegate_service.api.routing.policies"
            )


def policy_of(route: BaseRoute) -> Policy | None:
    """The policy of a route; None where it has none, or more than one."""
    if not isinstance(route, APIRoute):
        return None
    called: list[object] = [dependency.call for dependency in route.dependant.dependencies]
    found = [policy for policy in called if isinstance(policy, Policy)]
    return found[0] if len(found) == 1 else None


def _all_routes(routes: Sequence[BaseRoute]) -> Iterator[BaseRoute]:
    for context in iter_route_contexts(routes):
        yield context.original_route


async def _authenticated(request: Request) -> Principal:
    """Who sends this; counted among its principal's requests until the request ends. A read has its
    turn among theirs."""
    authenticator, state = authenticator_of(request), state_of(request)
    if authenticator is None:
        principal = state.principal = ANYBODY
    else:
        principal = await _found(authenticator, request)
    state.share = share_of(principal)
    gate = gate_of(request)
    await gate.begin(state)
    if request.method == "GET":
        await gate.begin_read(principal.name, state)
    return principal


async def _found(authenticator: Authenticator, request: Request) -> Principal:
    state = state_of(request)
    address = address_of(request.scope)
    principal = await authenticator.principal(_token(request), address=address)
    if principal is None:
        raise Unauthenticated("the token is unknown, expired or revoked")
    state.principal = principal
    gate_of(request).enter(principal.name, state)
    return principal


def _token(request: Request) -> str:
    given = [value for name, value in request.scope["headers"] if name == b"authorization"]
    if not given:
        raise Unauthenticated("expected the header Authorization: Bearer <token>, found none")
    bearer = _BEARER.match(given[0].decode("latin-1"))
    if len(given) > 1 or bearer is None:
        raise Unauthenticated("expected one header Authorization: Bearer <token>")
    return bearer.group(1)


def _require(principal: Principal, role: Role, table: str) -> None:
    if not principal.may(role, table):
        raise Forbidden(f"{_who(principal)} is no {role} of the table {table[:255]!r}")


def _who(principal: Principal) -> str:
    return f"the principal {principal.name!r}"


def _let_in(request: Request, principal: Principal) -> None:
    state = state_of(request)
    state.caller = Caller(principal=principal, request_id=state.id)
