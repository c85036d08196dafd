"""What the edge knows of a request, and reading its body within bounds."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from fastapi import Request

from tidegate_protocol.problems import Code
from tidegate_service.api.room import Room
from tidegate_service.core.access import Caller, Principal
from tidegate_service.core.context import Context
from tidegate_service.core.correlation import Correlation
from tidegate_service.core.errors import Refused, Unavailable
from tidegate_service.core.tokens import Authenticator

SCOPE_KEY = "tidegate.request"

JSON = "application/json"
NDJSON = "application/x-ndjson"


def _no_deadline() -> None:
    """Nothing bounds a request that has not begun to run."""


@dataclass(slots=True)
class RequestState(Correlation):
    """One request, from its first byte to its log line.

    `may_land` is set once a proposal has been handed to the core: from then on a request that
    ends without an answer says nothing about its outcome. `cause` is for the log alone. A call
    that reads a whole log, or lands a long body, asks for the longer deadline by `take_long`,
    and while it takes the body in, for the usual one once more by `begin_anew`. `headers` are by
    name in lower case; of those with one name, the first.
    """

    may_land: bool = False
    problem: Code | None = None
    detail: str | None = None
    cause: str | None = None
    principal: Principal | None = None
    caller: Caller | None = None
    at_end: list[Callable[[], None]] = field(default_factory=list)
    take_long: Callable[[], None] = _no_deadline
    begin_anew: Callable[[], None] = _no_deadline
    headers: Mapping[bytes, bytes] = field(default_factory=dict)


class Gate:
    """Counts the requests under way; once closed, it lets only health checks in.

    `per_principal` bounds how many of them are of one principal."""

    def __init__(self, *, per_principal: int | None = None) -> None:
        self.closed = False
        self.under_way = 0
        self._per_principal = per_principal
        self._of_principal: Counter[str] = Counter()

    def close(self) -> None:
        self.closed = True

    def enter(self, principal: str, state: RequestState) -> None:
        """Count a request as its principal's until it ends. Raises `Unavailable`
        (`backpressure`) where there are too many."""
        limit = self._per_principal
        if limit is not None and self._of_principal[principal] >= limit:
            raise Unavailable(
                f"{limit} requests of this principal are under way, as many as are taken; "
                "nothing was done",
                code=Code.BACKPRESSURE,
            )
        self._of_principal[principal] += 1
        state.at_end.append(lambda: self._leave(principal))

    def _leave(self, principal: str) -> None:
        self._of_principal[principal] -= 1
        if not self._of_principal[principal]:
            del self._of_principal[principal]


def state_of(request: Request) -> RequestState:
    return cast(RequestState, request.scope[SCOPE_KEY])


def context_of(request: Request) -> Context:
    """The world as this request's caller may act on it. Only a request whose policy was met
    gets it (`policies`)."""
    caller = state_of(request).caller
    if caller is None:
        raise AssertionError(f"no policy let this request to {request.url.path} in")
    return world_of(request).called_by(caller)


def world_of(request: Request) -> Context:
    """The world that the composition put beside the application, for policies to ask."""
    return cast(Context, request.app.state.context)


def authenticator_of(request: Request) -> Authenticator | None:
    """None where the service asks nobody who they are."""
    return cast(Authenticator | None, request.app.state.authenticator)


def gate_of(request: Request) -> Gate:
    return cast(Gate, request.app.state.gate)


def max_body_bytes_of(request: Request) -> int:
    """How large a body may be, received and inflated."""
    return cast(int, request.app.state.max_body_bytes)


def max_stream_bytes_of(request: Request) -> int:
    """How large a body of NDJSON may be, received and inflated."""
    return cast(int, request.app.state.max_stream_bytes)


def max_stream_actions_of(request: Request) -> int:
    """How many actions a body of NDJSON may have."""
    return cast(int, request.app.state.max_stream_actions)


def room_of(request: Request) -> Room:
    """What large bodies share."""
    return cast(Room, request.app.state.room)


def exposition_of(request: Request) -> Callable[[], Awaitable[bytes]]:
    """What gives the text of `/metrics`."""
    return cast(Callable[[], Awaitable[bytes]], request.app.state.exposition)


def media_type(request: Request, *accepted: str) -> str:
    """The body's media type, one of `accepted`. Raises `Refused` (415) for any other and for
    none."""
    given = state_of(request).headers.get(b"content-type", b"").decode("latin-1")
    if given in accepted:
        return given
    kind, _, parameters = given.partition(";")
    # HTTP's blanks, not Unicode's: a header is Latin-1 here, and that has more of them.
    kind = kind.strip(" \t").lower()
    charset = parameters.replace(" ", "").replace('"', "").lower()
    if kind not in accepted or charset not in ("", "charset=utf-8"):
        raise Refused(
            f"expected Content-Type {' or '.join(accepted)} in UTF-8, found {given[:80]!r}",
            code=Code.UNSUPPORTED_MEDIA_TYPE,
        )
    return kind
