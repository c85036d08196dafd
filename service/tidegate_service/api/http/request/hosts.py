"""By which names the service may be called, and from which pages.

Without authentication, whoever can make this machine's browser send a request could use the
service: a page whose own name is made to resolve to loopback (DNS rebinding), or a page that
simply posts across origins. Both show in headers that a page cannot choose: Host, Origin and
Sec-Fetch-Site. A browser that sends neither of the last two asks first (a preflight, which is
answered by nothing here) before it sends a header or a media type that no form has.
"""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

from starlette.types import Scope

from tidegate_protocol.base.problems import Code
from tidegate_protocol.base.text import excerpt
from tidegate_service.core.errors import Refused

_ONLY_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_OF_NO_FORM = ("application/json", "application/x-ndjson")
"""Media types that a page of another origin cannot send without a preflight."""
_NEEDS_PREFLIGHT = frozenset({"authorization", "x-request-id", "x-requested-with"})
"""Headers of which the same is true."""
_OF_THIS_ORIGIN = frozenset({"same-origin", "none"})
"""What Sec-Fetch-Site says of the service's own pages, and of what a person typed or clicked."""
_DEFAULT_PORTS = {"http": "80", "https": "443"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosts:
    """`names` are taken, in lower case and without a port; with `loopback`, every name of
    loopback is too. Without either, any name is."""

    names: frozenset[str] = frozenset()
    loopback: bool = False

    def check(self, scope: Scope) -> None:
        """Raise `Refused` (`malformed-http`) for a request that does not name one host, and
        (`host-not-allowed`) for a host, or a browser's origin, that is not taken."""
        hosts, origins = _values(scope, b"host"), _values(scope, b"origin")
        if len(hosts) != 1 and not (not hosts and scope["http_version"] == "1.0"):
            raise Refused(f"expected one Host header, found {len(hosts)}", code=Code.MALFORMED_HTTP)
        if not self.names and not self.loopback:
            return
        for host in hosts:
            if not self._takes(host):
                raise _refused("host", host)
        for origin in origins:
            # A browser sends "null" for pages that have none to speak of.
            if not self._takes(_host_of_origin(origin)):
                raise _refused("origin", origin)
        if self.loopback and scope["method"] not in _ONLY_READS:
            _check_page(scope, hosts, origins)

    def _takes(self, host: str) -> bool:
        name = _without_port(host.lower())
        return name in self.names or (self.loopback and _is_loopback(name))


def allowed(names: Sequence[str], *, authenticated: bool) -> Hosts:
    """What the settings say: without authentication, loopback and the names; with it, the names
    where there are any, and everything where there are none."""
    return Hosts(names=frozenset(names), loopback=not authenticated)


def _check_page(scope: Scope, hosts: Sequence[str], origins: Sequence[str]) -> None:
    """Raise `Refused` for a call that changes something and that a page of another origin, such as
    one of another port of loopback, can have made the browser send."""
    sites = _values(scope, b"sec-fetch-site")
    for site in sites:
        if site.lower() not in _OF_THIS_ORIGIN:
            raise _refused("page's site", f"Sec-Fetch-Site: {site}")
    for origin in origins:
        if not any(_is_origin_of(origin, host) for host in hosts):
            raise _refused("origin", origin)
    if sites or origins or scope["method"] != "POST" or _needs_preflight(scope):
        # Forms know GET and POST only: a preflight comes before any other method.
        return
    raise Refused(
        f"expected Content-Type {' or '.join(_OF_NO_FORM)}, or one of the headers "
        f"{', '.join(sorted(_NEEDS_PREFLIGHT))}, with a POST without authentication; "
        "found none of them, as where a page of another origin makes a browser send it",
        code=Code.UNSUPPORTED_MEDIA_TYPE,
        hint="add -H 'content-type: application/json', also where there is no body",
    )


def _needs_preflight(scope: Scope) -> bool:
    kinds = (
        value.partition(";")[0].strip(" \t").lower() for value in _values(scope, b"content-type")
    )
    names = {name.decode("latin-1") for name, _ in scope["headers"]}
    return any(kind in _OF_NO_FORM for kind in kinds) or not names.isdisjoint(_NEEDS_PREFLIGHT)


def _is_origin_of(origin: str, host: str) -> bool:
    """Whether pages of the origin are those of the service, as it was called by this Host."""
    scheme, found, netloc = origin.lower().partition("://")
    port = _DEFAULT_PORTS.get(scheme)
    return bool(found) and host.lower() in (
        netloc,
        f"{netloc}:{port}",
        netloc.removesuffix(f":{port}"),
    )


def _values(scope: Scope, header: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in scope["headers"] if name == header]


def _host_of_origin(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() and not name.endswith(":") else host


@lru_cache(maxsize=64)
def _is_loopback(name: str) -> bool:
    try:
        if name.startswith("[") and name.endswith("]"):
            return ipaddress.IPv6Address(name[1:-1]).is_loopback
        return name == "localhost" or ipaddress.IPv4Address(name).is_loopback
    except ValueError:
        return False


def _refused(what: str, found: str) -> Refused:
    return Refused(
        f"the {what} {excerpt(found)} is not one that this service is called by",
        code=Code.HOST_NOT_ALLOWED,
        hint="call it by the address that it listens on, or add the name to allowed_hosts",
    )
