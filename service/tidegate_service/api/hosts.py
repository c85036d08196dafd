"""By which names the service may be called.

Without authentication, whoever can make this machine's browser send a request could use the
service: a page whose own name is made to resolve to loopback (DNS rebinding), or a page that
simply posts across origins. Both show in headers that a page cannot choose.
"""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

from starlette.types import Scope

from tidegate_protocol.problems import Code
from tidegate_protocol.text import excerpt
from tidegate_service.core.errors import Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosts:
    """`names` are taken, in lower case and without a port; with `loopback`, every name of
    loopback is too. Without either, any name is."""

    names: frozenset[str] = frozenset()
    loopback: bool = False

    def check(self, scope: Scope) -> None:
        """Raise `Refused` (`malformed-http`) for a request that does not name one host, and
        (`host-not-allowed`) for a host, or a browser's origin, that is not taken."""
        hosts, origins = [], []
        for name, value in scope["headers"]:
            if name == b"host":
                hosts.append(value.decode("latin-1"))
            elif name == b"origin":
                origins.append(value.decode("latin-1"))
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

    def _takes(self, host: str) -> bool:
        name = _without_port(host.lower())
        return name in self.names or (self.loopback and _is_loopback(name))


def allowed(names: Sequence[str], *, authenticated: bool) -> Hosts:
    """What the settings say: without authentication, loopback and the names; with it, the names
    where there are any, and everything where there are none."""
    return Hosts(names=frozenset(names), loopback=not authenticated)


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
