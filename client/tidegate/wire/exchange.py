"""What flows and transports say to each other; no HTTP library in sight."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import quote

REQUEST_ID_HEADER = "x-request-id"
JSON = "application/json"
NDJSON = "application/x-ndjson"


class Pieces(Protocol):
    """A large content in pieces, which are the same each time that they are gone through."""

    @property
    def size(self) -> int:
        """Of all together, in bytes."""
        ...

    def __iter__(self) -> Iterator[bytes]: ...


Body = bytes | Pieces
"""A request's content, or its pieces where it is large: they are sent one after the other, and
again for every further copy."""


def segment(text: str) -> str:
    """Any text as one segment of a path."""
    quoted = quote(text, safe="")
    # Left as they are, "." and ".." would be resolved away before the request is sent.
    return quoted.replace(".", "%2E") if quoted in (".", "..") else quoted


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A call below the service's API root. `path` is percent-encoded and starts with "/";
    `application_id` is the Spark application's that makes it. `request_id` is this copy's own,
    which the answer to it carries."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Body | None = None
    content_type: str = JSON
    accept: str = JSON
    application_id: str | None = None
    request_id: str | None = None

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A complete answer; header names are in lower case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def media_type(self) -> str:
        """In lower case and without parameters; "" where the answer names none."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportFailure:
    """No complete answer came. `sent` is False only where no byte of the request can have
    reached the service, so that this copy of it was certainly not executed."""

    sent: bool
    detail: str


Answer = Response | TransportFailure


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A flow's wish: wait `after_s` seconds, then send the request and wait for its answer at
    most `timeout_s` seconds without hearing anything. No further attempt begins after `left_s`
    seconds from now on."""

    request: Request
    timeout_s: float
    after_s: float = 0.0
    left_s: float = 0.0


class Transport(Protocol):
    """Sends one copy of a request, never a second one by itself."""

    def send(self, request: Request, *, timeout_s: float) -> Answer: ...

    def close(self) -> None: ...
