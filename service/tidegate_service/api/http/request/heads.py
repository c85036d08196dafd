"""What a request's head says, as far as it can be used as it is."""

import re
from collections.abc import Mapping

from starlette.types import Scope

Headers = Mapping[bytes, bytes]
"""A request's headers by name in lower case; of those with one name, the first."""

PROXIED = "tidegate.proxied"
"""Of a scope, where it came on a connection of a proxy's."""

_SAFE_ID = re.compile(rb"[A-Za-z0-9._-]{1,128}\Z")
_NO_TRACE: Mapping[str, str] = {}


def safe_id(headers: Headers, name: bytes) -> str | None:
    """The client's id, if it is one that no log or header can be hurt by."""
    given = headers.get(name)
    return None if given is None or not _SAFE_ID.match(given) else given.decode("ascii")


def trace_headers(headers: Headers) -> Mapping[str, str]:
    """The W3C trace context that the client sent."""
    if b"traceparent" not in headers:
        return _NO_TRACE
    return {
        name.decode("ascii"): headers[name].decode("latin-1")
        for name in (b"traceparent", b"tracestate")
        if name in headers
    }


def address_of(scope: Scope) -> str:
    """Who sends it; empty where the server does not say."""
    client = scope.get("client")
    return "" if client is None else str(client[0])


def is_proxied(scope: Scope) -> bool:
    """Whether its connection is a proxy's, and the next request on it somebody else's."""
    return PROXIED in scope
