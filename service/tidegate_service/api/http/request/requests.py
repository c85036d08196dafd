"""What the edge knows of a request, and reading its body within bounds."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from fastapi import Request

from tidegate_protocol.base.problems import Code
from tidegate_service.api.http.readiness import Readiness
from tidegate_service.api.http.request.body_memory import BodyMemory
from tidegate_service.api.http.request.faces import Face
from tidegate_service.core.access.roles import ANYBODY, Caller, Principal, share_of
from tidegate_service.core.access.tokens import Authenticator
from tidegate_service.core.context import Context
from tidegate_service.core.errors import Refused, Unavailable
from tidegate_service.core.observe.correlation import Correlation
from tidegate_service.core.sharing.pools import Share
from tidegate_service.core.sharing.shares import Shares
from tidegate_service.core.sharing.turns import OwnTurns, Passes

PREFIX = "/api/v1"
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
    name in lower case; of those with one name, the first. `face` is the API that it is for. Two
    fields are the gate's: `counted`, and `reads_for`, the principal in whose turn at reading it is.
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
    face: Face = Face.OWN
    counted: bool = False
    reads_for: str | None = None


SCANS_SHARE = 4
"""One in so many of a principal's requests may be a scan: these hold what they have fetched."""


READS = 8
"""Reads of one principal that are worked on at a time: each takes some of the event loop, and a
connection to the database, which commits of others wait for."""

BEGIN = 4
"""Requests of all principals that begin, or whose bodies are decoded, in one pass of the event
loop: some milliseconds."""

REFUSALS = 5
"""So many of one principal's requests are refused in `Gate`'s `refusals_s`; the others wait for it.
A refusal costs the event loop a millisecond, and nothing else that is scarce."""


class Gate:
    """Counts the requests under way; once closed, it lets only health checks in.

    `under_way` are all but those. Those that are somebody's, or may be, are counted besides, and
    bounded. `per_principal` bounds how many of them are of one principal, and a share of `most`
    does; a share of `scans` bounds how many are scans: whoever is slow to read answers keeps nobody
    else from scanning. There is no bound where these are None."""

    def __init__(
        self,
        *,
        per_principal: int | None = None,
        most: int | None = None,
        scans: int | None = None,
        refusals_s: float = 0.05,
    ) -> None:
        self.closed = False
        self.under_way = 0
        self._counted = 0
        self._per_principal = sys.maxsize if per_principal is None else per_principal
        self._requests = Shares(sys.maxsize if most is None else most, "requests under way")
        self._scans = Shares(sys.maxsize if scans is None else scans, "scans under way")
        self._reads = OwnTurns(READS)
        self._passes = Passes(BEGIN)
        self._refusals = OwnTurns(REFUSALS)
        self._refusals_s = refusals_s

    def close(self) -> None:
        self.closed = True

    def count(self, state: RequestState, most: int) -> bool:
        """Count a request that may be somebody's, until it ends or is found to be nobody's. False
        where there are `most` already."""
        if self._counted >= most:
            return False
        self._counted += 1
        state.counted = True
        return True

    def uncount(self, state: RequestState) -> None:
        """It has ended, or is nobody's; nothing to do for one that is not counted."""
        self._counted -= state.counted
        state.counted = False

    def enter(self, principal: str, state: RequestState) -> None:
        """Count a request as its principal's until it ends. Raises `Unavailable`
        (`backpressure`) where there are too many."""
        _enter(self._requests, principal, self._per_principal, "requests", state)

    def enter_scan(self, state: RequestState) -> None:
        """The same of one that has entered already and is a scan."""
        assert state.principal is not None
        if state.principal is not ANYBODY:
            most = max(1, self._per_principal // SCANS_SHARE)
            _enter(self._scans, state.principal.name, most, "scans", state)

    async def begin(self, state: RequestState) -> None:
        """Wait until the event loop may work on it: principals have their turns, and who is not
        told from others has none. Called before each piece of work that needs nothing but what
        came: one that asks for many at once, whatever becomes of them, waits behind itself."""
        if state.principal is not None and state.principal is not ANYBODY:
            await self._passes.begin(state.principal.name)

    async def begin_refusal(self, state: RequestState) -> None:
        """Wait until its principal may be told that it is refused. However soon it was found: to
        ask again at once is what a flood does."""
        if state.principal is not None and state.principal is not ANYBODY:
            principal = state.principal.name
            await self._refusals.take(principal)
            asyncio.get_running_loop().call_later(self._refusals_s, self._refusals.end, principal)

    async def begin_read(self, principal: str, state: RequestState) -> None:
        """Wait until it may be worked on, `READS` of its principal at a time."""
        await self._reads.take(principal)
        state.reads_for = principal

    def end_read(self, state: RequestState) -> None:
        """Its work is done, or goes on by other bounds; nothing to do for one that has no turn."""
        if state.reads_for is not None:
            self._reads.end(state.reads_for)
            state.reads_for = None


def _enter(shares: Shares, principal: str, most: int, what: str, state: RequestState) -> None:
    if shares.of(principal) >= most:
        raise Unavailable(
            f"{most} {what} of this principal are under way, as many as are taken; nothing was "
            "done",
            code=Code.BACKPRESSURE,
        )
    shares.take(principal)
    state.at_end.append(lambda: shares.give_back(principal))


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


def readiness_of(request: Request) -> Readiness:
    return cast(Readiness, request.app.state.readiness)


def max_body_bytes_of(request: Request) -> int:
    """How large a body may be, received and inflated."""
    return cast(int, request.app.state.max_body_bytes)


def max_stream_bytes_of(request: Request) -> int:
    """How large a body of NDJSON may be, received and inflated."""
    return cast(int, request.app.state.max_stream_bytes)


def max_stream_actions_of(request: Request) -> int:
    """How many actions a body of NDJSON may have."""
    return cast(int, request.app.state.max_stream_actions)


def body_memory_of(request: Request) -> BodyMemory:
    """What large bodies share, as the caller may reservation it."""
    principal = state_of(request).principal
    who = None if principal is None else share_of(principal)
    return BodyMemory(cast(Shares, request.app.state.body_memory), who)


def body_threads_of(request: Request) -> Share:
    """What a request's principal has of the threads for bodies."""
    principal = state_of(request).principal
    return world_of(request).body_threads.of("" if principal is None else principal.name)


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
