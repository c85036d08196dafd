"""Proxies that the operator trusts to say for whom they ask.

uvicorn's middleware (`uvicorn.middleware.proxy_headers`) would take whatever the header has for an
address: words, or one with a zone of sixteen kilobytes, each of which is remembered here as
somebody else. It also does not know a proxy of IPv4 where the service listens on IPv6.
"""

import ipaddress
import re
from collections.abc import Iterable
from functools import lru_cache

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network

FORWARDED_FOR = b"x-forwarded-for"
HOPS = 16
"""Proxies, one behind the other, that are looked through for who asks."""
_REMEMBERED = 10_000
_TOLD = re.compile(
    r"(?:\[([\da-f:.]{2,45})\]|([\d.]{7,15}))(?::\d{1,5})?|([\da-f:.]{2,45})", re.ASCII | re.I
)
"""An address, with or without a port; of IPv6 then in brackets."""


def network_of(text: str) -> _Network:
    """An address is a network of one. Raises `ValueError`, which says what is wrong."""
    found = ipaddress.ip_network(text)
    if isinstance(found, ipaddress.IPv6Network) and found.network_address.ipv4_mapped is not None:
        raise ValueError(f"{text!r} is one of IPv4: expected it to be written as such")
    return found


class Proxies:
    """Those in some networks, given as text; none by default."""

    def __init__(self, networks: Iterable[str] = ()) -> None:
        self._networks = tuple(map(network_of, networks))
        self._known = lru_cache(maxsize=_REMEMBERED)(self._found)

    def has(self, address: str) -> bool:
        """Whether it is one of them."""
        return bool(self._networks) and self._known(address)

    def caller(self, proxy: str, headers: Iterable[tuple[bytes, bytes]]) -> str:
        """For whom the proxy sends a request with these headers: whoever is no proxy, as the last
        of them was told. Where one tells no address, it is its own."""
        told = b",".join(value for name, value in headers if name == FORWARDED_FOR)
        caller = proxy
        # Those before the last few are one text, which is no address.
        for text in reversed(told.decode("latin-1").rsplit(",", HOPS)):
            found = _TOLD.fullmatch(text.strip(" \t"))
            address = None if found is None else _parsed(found[found.lastindex or 0])
            if address is None:
                break
            caller = str(address)
            if not self.has(caller):
                break
        return caller

    def _found(self, address: str) -> bool:
        parsed = _parsed(address.partition("%")[0])
        return parsed is not None and any(parsed in network for network in self._networks)


def _parsed(text: str) -> _Address | None:
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found
