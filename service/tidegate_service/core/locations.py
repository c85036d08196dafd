"""Where tables may live: canonical `file:///` URLs inside allowed prefixes."""

from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from tidegate_protocol.problems import Code
from tidegate_protocol.text import excerpt
from tidegate_service.core.errors import Refused

SCHEMES = frozenset({"file"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LocationPolicy:
    """`warehouse` is where tables without a location of their own go; `prefixes` are further
    folders that a caller may name. All are canonical URLs without a trailing slash."""

    warehouse: str
    prefixes: tuple[str, ...] = ()

    def default(self, name: str) -> str:
        """`<warehouse>/<catalog>/<schema>/<table>`, in lower case, since names are looked up
        in any case."""
        return "/".join([self.warehouse, *name.lower().split(".")])

    def canonical(self, location: str) -> str:
        """The location in the form it is stored in. Raises `Refused` (`invalid-location`)."""
        found = canonical_url(location)
        allowed = (self.warehouse, *self.prefixes)
        if not any(found.startswith(f"{prefix}/") for prefix in allowed):
            raise _refused(location, f"it lies outside the allowed prefixes {list(allowed)}")
        return found


def canonical_url(location: str) -> str:
    """A `file:///` URL without a trailing slash, or `Refused`. Nothing is resolved or decoded:
    what would need that (`..`, percent escapes, an empty segment) is refused."""
    if any(ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 for c in location):
        raise _refused(location, "it contains a control character")
    if "%" in location and unquote(location) != location:
        raise _refused(location, "it contains percent escapes")
    if "\\" in location or "?" in location or "#" in location:
        raise _refused(location, "it contains a backslash, '?' or '#'")
    try:
        url = urlsplit(location)
    except ValueError as error:
        raise _refused(location, str(error)) from None
    if url.scheme not in SCHEMES:
        raise _refused(location, f"its scheme is not one of {sorted(SCHEMES)}")
    if url.netloc:
        raise _refused(location, "a file location has no host: expected file:///folder")
    path = url.path.rstrip("/")
    segments = path.split("/")[1:]
    if not segments or any(segment in ("", ".", "..") for segment in segments):
        raise _refused(location, "it has an empty, '.' or '..' segment")
    if "_delta_log" in segments:
        raise _refused(location, "it lies in a table's _delta_log")
    return f"{url.scheme}://{path}"


def _refused(location: str, why: str) -> Refused:
    return Refused(
        f"the location {excerpt(location)} is not allowed: {why}", code=Code.INVALID_LOCATION
    )
