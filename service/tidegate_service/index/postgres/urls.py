"""Database URLs as users write them, and as SQLAlchemy wants them."""

import re

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

_DRIVER = "postgresql+psycopg"
_ACCEPTED = ("postgresql", "postgres", _DRIVER)
_AUTHORITY = re.compile(
    r"(?P<account>[^/?#]*@)?(?P<hosts>[^/?#@]*)(?P<path>[^?#]*)\??(?P<query>.*)"
)
_HOST = re.compile(r"(?P<host>\[[^\]]*\]|[^:]*)(:(?P<port>\d*))?")


def driver_url(url: str) -> URL:
    """`postgresql://...` as a URL for psycopg, sync or async; several hosts may stand in it as for
    libpq. Its text form masks the password.

    Raises `ValueError` (without the URL, which may hold a password) for anything else.
    """
    # SQLAlchemy has no dialect by the short name that libpq accepts too.
    scheme, _, rest = url.partition("://")
    if scheme not in _ACCEPTED:
        raise ValueError(
            f"expected a database URL of the form postgresql://user:password@host:port/database, "
            f"found the scheme {scheme[:20]!r}"
        )
    try:
        return make_url(f"{_DRIVER}://{_with_one_host(rest)}")
    except (ArgumentError, ValueError):
        raise ValueError(
            "expected a database URL of the form postgresql://user:password@host:port/database; "
            "escape special characters of the password as in any URL"
        ) from None


def _with_one_host(rest: str) -> str:
    """What follows the scheme, with hosts that stand where SQLAlchemy knows a single one given as
    parameters. Raises `ValueError` for hosts that are none."""
    parts = _AUTHORITY.fullmatch(rest)
    if parts is None or "," not in parts["hosts"]:
        return rest
    found = [_HOST.fullmatch(host) for host in parts["hosts"].split(",")]
    pairs = [(one["host"].strip("[]"), one["port"] or "5432") for one in found if one is not None]
    if len(pairs) < len(found):
        raise ValueError("a host is none")
    hosts, ports = zip(*pairs, strict=True)
    query = "&".join(
        [f"host={','.join(hosts)}", f"port={','.join(ports)}", *filter(None, [parts["query"]])]
    )
    return f"{parts['account'] or ''}{parts['path'] or '/'}?{query}"
