"""Addresses in settings: which are taken, and how they may be shown."""

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what listens there."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_postgres_url(url: str) -> bool:
    """Whether it is `postgresql://` with the name of a database."""
    try:
        parts = urlsplit(url)
        _ = parts.port
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
