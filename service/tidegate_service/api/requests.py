"""What the edge knows of a request, and reading its body within bounds."""

from dataclasses import dataclass
from typing import cast

from fastapi import Request

from tidegate_protocol.problems import Code
from tidegate_service.core.context import Context
from tidegate_service.core.errors import Refused

SCOPE_KEY = "tidegate.request"

JSON = "application/json"
NDJSON = "application/x-ndjson"


@dataclass(slots=True)
class RequestState:
    """One request, from its first byte to its log line.

    `may_land` is set once a proposal has been handed to the core: from then on a request that
    ends without an answer says nothing about its outcome. `cause` is for the log alone.
    """

    id: str
    transaction_id: str | None = None
    may_land: bool = False
    problem: Code | None = None
    detail: str | None = None
    cause: str | None = None


class Gate:
    """Counts the requests under way; once closed, it lets only health checks in."""

    def __init__(self) -> None:
        self.closed = False
        self.under_way = 0

    def close(self) -> None:
        self.closed = True


def state_of(request: Request) -> RequestState:
    return cast(RequestState, request.scope[SCOPE_KEY])


def context_of(request: Request) -> Context:
    """The world that the composition put beside the application."""
    return cast(Context, request.app.state.context)


def gate_of(request: Request) -> Gate:
    return cast(Gate, request.app.state.gate)


def media_type(request: Request, *accepted: str) -> str:
    """The body's media type, one of `accepted`. Raises `Refused` (415) for any other, for none
    and for an encoded body."""
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise Refused(
            f"bodies with Content-Encoding {encoding[:40]!r} are not taken; send it as it is",
            code=Code.UNSUPPORTED_MEDIA_TYPE,
        )
    given = request.headers.get("content-type", "")
    kind, _, parameters = given.partition(";")
    kind = kind.strip().lower()
    charset = parameters.replace(" ", "").replace('"', "").lower()
    if kind not in accepted or charset not in ("", "charset=utf-8"):
        raise Refused(
            f"expected Content-Type {' or '.join(accepted)} in UTF-8, found {given[:80]!r}",
            code=Code.UNSUPPORTED_MEDIA_TYPE,
        )
    return kind
