"""Database URLs as users write them, and as SQLAlchemy wants them."""

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

_DRIVER = "postgresql+psycopg"
_ACCEPTED = ("postgresql", "postgres", _DRIVER)


def driver_url(url: str) -> URL:
    """`postgresql://...` as a URL for psycopg, sync or async. Its text form masks the password.

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
        return make_url(f"{_DRIVER}://{rest}")
    except (ArgumentError, ValueError):
        raise ValueError(
            "expected a database URL of the form postgresql://user:password@host:port/database; "
            "escape special characters of the password as in any URL"
        ) from None
