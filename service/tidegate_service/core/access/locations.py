"""Where tables may live: canonical URLs inside allowed prefixes, and whose folders these are in.

One place has one canonical URL, so that two tables cannot overlap under different spellings:
`file:///folder`, `s3://bucket/prefix`, `gs://bucket/prefix` and
`abfss://container@account.dfs.core.windows.net/prefix`.
"""

import re
import unicodedata
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from tidegate_protocol.base.problems import Code
from tidegate_protocol.base.text import excerpt
from tidegate_service.core.access.names import is_part
from tidegate_service.core.access.roles import EVERYTHING
from tidegate_service.core.errors import Refused

SCHEMES = frozenset({"file", "s3", "gs", "abfss"})
_SAME_AS = {"s3a": "s3"}
"""Spark's name for S3; what is stored is S3's own."""
_PARTS = 3
"""Of a table's name."""
MAX_SEGMENT_BYTES = 255
"""What file systems take for a name."""
_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
PROBES = ".tidegate-probe"
"""The folder in each place for tables whose files show what the store does."""
MAX_FOLDERS = 64
"""That a table may lie in: each is locked while a table is made there."""
MAX_KEY_BYTES = 800
"""Object stores take keys of 1,024 bytes; the rest is left for the names of files."""
MAX_LOCATION_LENGTH = 2048
"""In characters, of a URL as it is given: more than a path of `MAX_KEY_BYTES` has with any scheme,
host and slash at its end. It is gone through one character at a time."""
_LABEL = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_ADDRESS = re.compile(r"[0-9]+(\.[0-9]+){3}")
# What stands before the path, by scheme: a pattern and how to say it.
_AUTHORITIES = {
    "file": (re.compile(r""), "a file location has no host: expected file:///folder"),
    "s3": (
        # The last part excludes directory buckets, which do not list their keys in order.
        re.compile(rf"(?=.{{3,63}}\Z){_LABEL}(?:\.{_LABEL})*(?<!--x-s3)"),
        "expected s3://bucket/prefix with a bucket's name of 3 to 63 lower-case letters, digits, "
        "'-' and '.'",
    ),
    "gs": (
        re.compile(r"[a-z0-9](?:[a-z0-9_-]|\.(?!\.)){1,220}[a-z0-9]"),
        "expected gs://bucket/prefix with a bucket's name of lower-case letters, digits, '-', "
        "'_' and '.'",
    ),
    "abfss": (
        re.compile(
            r"(?=[^@]{3,63}@)[a-z0-9]+(?:-[a-z0-9]+)*@[a-z0-9]{3,24}\.dfs\.core\.windows\.net"
        ),
        "expected abfss://container@account.dfs.core.windows.net/prefix",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LocationPolicy:
    """`warehouse` is where tables without a location of their own go; `prefixes` are further
    places that a caller may name. All are canonical URLs without a trailing slash."""

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
            raise _refused(
                location,
                f"it lies outside the warehouse ({self.warehouse}) and the places of the "
                f"service's setting allowed_locations ({', '.join(self.prefixes) or 'none'})",
            )
        return found

    def scope_of(self, location: str) -> str | None:
        """The scope whose folder the location is, or lies in; None where a prefix of the operator
        is for any scope.

        In the warehouse the first folder is a catalog's, the next a schema's, the third a table's,
        in any case. What is no name ends that, so that its folder is of the scope above: whatever
        a file system may take for the same folder. A prefix inside the warehouse goes before it.
        """
        place, warehouse = _folded(location).rstrip("/"), _folded(self.warehouse)
        if f"{warehouse}/".startswith(f"{place}/"):
            # All of the warehouse is in it.
            return EVERYTHING
        if not place.startswith(f"{warehouse}/"):
            return None
        for prefix in self.prefixes:
            within = f"{location}/".startswith(f"{prefix}/")
            if within and _folded(prefix).startswith(f"{warehouse}/"):
                return None
        scope: list[str] = []
        # As they are, not folded: "\u00df" is no name, and "ss", which it folds to, another one's.
        for part in location.split("/")[warehouse.count("/") + 1 :][:_PARTS]:
            if not is_part(part):
                break
            scope.append(part.lower())
        return ".".join(scope) or EVERYTHING

    def store_of(self, location: str) -> str:
        """What a canonical location shares its store's troubles with: a bucket, or the innermost
        local folder that holds it, which may be a mount of its own."""
        places = (self.warehouse, *self.prefixes)
        local = [place for place in places if place.startswith("file:")]
        bucket = "{0.scheme}://{0.netloc}".format(urlsplit(location))
        holding = (place for place in local if location.startswith(f"{place}/"))
        return max(holding, key=len, default=bucket)


def check_length(location: str) -> None:
    """Raise `Refused` (`invalid-location`) for what is too long to be looked at."""
    if len(location) > MAX_LOCATION_LENGTH:
        raise _refused(location, f"it has more than {MAX_LOCATION_LENGTH} characters")


def canonical_url(location: str) -> str:
    """The URL as it is stored, without a trailing slash, or `Refused`. Nothing is resolved or
    decoded: what would need that (`..`, percent escapes, an empty segment) is refused."""
    check_length(location)
    if any(unicodedata.category(c) in _UNSEEN for c in location):
        raise _refused(location, "it contains a control, format or separator character")
    if not unicodedata.is_normalized("NFC", location):
        # Some file systems take both forms for one name.
        raise _refused(location, "it is not in Unicode's composed form (NFC)")
    if "%" in location and unquote(location) != location:
        raise _refused(location, "it contains percent escapes")
    if "\\" in location or "?" in location or "#" in location:
        raise _refused(location, "it contains a backslash, '?' or '#'")
    if location[:1].isspace():
        raise _refused(location, "it starts with a space")
    try:
        url = urlsplit(location)
    except ValueError as error:
        raise _refused(location, str(error)) from None
    scheme = _SAME_AS.get(url.scheme, url.scheme)
    if scheme not in SCHEMES:
        raise _refused(location, f"its scheme is not one of {sorted(SCHEMES)}")
    authority, expected = _AUTHORITIES[scheme]
    if not authority.fullmatch(url.netloc) or _ADDRESS.fullmatch(url.netloc):
        raise _refused(location, expected)
    path = url.path.rstrip("/")
    segments = path.split("/")[1:]
    if scheme == "file" and not (path.startswith("/") and segments):
        raise _refused(location, "it is relative, or the root of the file system")
    if any(segment in ("", ".", "..") for segment in segments):
        raise _refused(location, "it has an empty, '.' or '..' segment")
    if len(segments) > MAX_FOLDERS:
        raise _refused(location, f"it lies in more than {MAX_FOLDERS} folders")
    folders = {segment.lower() for segment in segments}
    if "_delta_log" in folders:
        raise _refused(location, "it lies in a table's _delta_log")
    if PROBES in folders:
        raise _refused(location, "it is where the service probes a place")
    if len(path.encode(errors="replace")) > MAX_KEY_BYTES:
        raise _refused(location, f"its path has more than {MAX_KEY_BYTES} bytes")
    longest = max((len(segment.encode(errors="replace")) for segment in segments), default=0)
    if scheme == "file" and longest > MAX_SEGMENT_BYTES:
        raise _refused(location, f"a segment has more than {MAX_SEGMENT_BYTES} bytes")
    return f"{scheme}://{url.netloc}{path}"


def _folded(location: str) -> str:
    # Not every file system tells cases apart; object stores do.
    return location.casefold() if location.startswith("file:") else location


def _refused(location: str, why: str) -> Refused:
    return Refused(
        f"the location {excerpt(location)} is not allowed: {why}", code=Code.INVALID_LOCATION
    )
