"""Addresses: which are taken in settings, how they may be shown, and whose a caller's is."""

import ipaddress
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import urlsplit

_IPV6_NETWORK = 64
"""Bits of an IPv6 address that one owner has: all below them are theirs."""
_SOURCES = 10_000
"""Addresses whose sources are remembered."""


@lru_cache(maxsize=_SOURCES)
def source_of(address: str) -> str:
    """What the addresses of one owner have in common, as far as an address tells. It is asked for
    several times a connection, and costs as much as taking one."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is None:
        return str(ipaddress.ip_network((parsed, _IPV6_NETWORK), strict=False))
    return str(parsed)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what listens there."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_postgres_url(url: str) -> bool:
    """Whether it is `postgresql://`, of one host or several, with the name of a database."""
    try:
        parts = urlsplit(url)
        for host in parts.netloc.rpartition("@")[2].split(","):
            _ = urlsplit(f"//{host}").port
    except ValueError:
        return False
    return parts.scheme in ("postgresql", "postgres") and parts.path.strip("/") != ""


def masked(url: str) -> str:
    """A URL without its password and query."""
    parts = urlsplit(url)
    user = f"{parts.username}:***@" if parts.password else ""
    user = user or (f"{parts.username}@" if parts.username else "")
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{user}{host}{parts.path}"


def standard_otlp(environ: Mapping[str, str]) -> dict[str, str]:
    """OpenTelemetry's own variables: the one for traces is the whole URL, the other its base."""
    whole = environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    base = environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")
    url = whole or (base and f"{base.rstrip('/')}/v1/traces")
    return {"otlp_endpoint": url} if url else {}
