"""File paths in actions: percent-encoded URI references (PROTOCOL.md, "Add File and Remove File").

Paths are compared in their decoded form: writers differ in what they escape, and two spellings
of one path are one file.
"""

import re
import unicodedata
from urllib.parse import quote

from tidegate_protocol.base.text import excerpt

MAX_PATH_BYTES = 1024

LOG_FOLDER = "_delta_log"

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
# What stands before the first folder of an absolute path: `/`, `file:/`, `file:///`, `s3://bucket/`.
_ROOT = re.compile(r"(?:[a-z][a-z0-9+.-]*:(?://[A-Za-z0-9._@-]*)?)?/")
# What Hadoop's Path.toUri leaves alone; partition values of Hive-style folders arrive here
# already escaped once, and their "%" is escaped again.
_SAFE = "/!$&'()*+,;=:@-._~"
# RFC 2396 as java.net.URI reads it: "?" and "#" would end the path there, and the rest of what is
# missing here makes it refuse the path, and with it the table.
_URI_PATH = re.compile(r"(?:[A-Za-z0-9/!$&'()*+,;=:@._~-]|%[0-9A-Fa-f]{2}|[^\x00-\x7f])*")
# Most paths are of this kind, of which all that follows takes every one.
_PLAIN = re.compile(r"[A-Za-z0-9=~-][A-Za-z0-9=_.~+,@-]*(?:/[A-Za-z0-9=_~-][A-Za-z0-9=_.~+,@-]*)*")
# Those that are no escapes, which a reader takes as they are.
_LONE_PERCENT = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# Format characters are in: java.net.URI takes them as they are, but they turn a line of text
# around or show nothing at all. Escaped, a path shows what it is; our own client escapes them.
_NOT_IN_URIS = ("Cc", "Cf", "Cs", "Zl", "Zp", "Zs")


class InvalidPath(ValueError):
    """The path of a file action is not allowed; the message says why."""


def decode(path: str) -> str:
    """The path a store knows the file by: percent escapes decoded once.

    Escapes that are not UTF-8, which `check` refuses, stay as they are: decoded loosely, two
    files would become one.
    """
    if "%" not in path:
        return path
    data = path.encode("utf-8", "surrogatepass").replace(b"\\", rb"\\")
    # By Python's own escapes: one pass in C, where `urllib` takes 0.4 us for each escape. Whoever
    # commits names thousands of files, and each of them is decoded more than once.
    try:
        plain = _unescaped(data)
    except UnicodeDecodeError:
        plain = _unescaped(_LONE_PERCENT.sub(b"%25", data))
    try:
        return plain.decode()
    except UnicodeDecodeError:
        return path


def _unescaped(data: bytes) -> bytes:
    return data.replace(b"%", rb"\x").decode("unicode_escape").encode("latin-1")


def identity(path: str) -> str:
    """What tells two files apart: the decoded path, and of the spellings of an absolute one (which
    Delta qualifies by its file system) a single one: `/x` for `file:/x` and `file:///x`, and
    `s3:` for Hadoop's other names of it."""
    plain = decode(path)
    if ":" not in plain:
        return plain
    scheme = _SCHEME.match(plain)
    if scheme is None:
        return plain
    name, rest = scheme[0].lower(), plain[scheme.end() :]
    if name == "file:" and (rest.startswith("///") or not rest.startswith("//")):
        return f"/{rest.lstrip('/')}"
    return f"s3:{rest}" if name in ("s3a:", "s3n:") else plain


def encode(path: str) -> str:
    """The path as an action carries it: the inverse of `decode`."""
    return quote(path, safe=_SAFE)


def check(path: str) -> None:
    """Raise `InvalidPath` unless `path` names a data file inside the table's folder."""
    if len(path) <= MAX_PATH_BYTES and _PLAIN.fullmatch(path):
        return
    if not path:
        raise InvalidPath("the path is empty; expected a path relative to the table's location")
    if len(path.encode("utf-8", "surrogatepass")) > MAX_PATH_BYTES:
        raise InvalidPath(f"the path is longer than {MAX_PATH_BYTES} bytes")
    if path.startswith("/") or _SCHEME.match(path):
        raise _absolute(path)
    _check_uri(path)
    plain = decode(path)
    if plain == path and "%" in path:
        raise InvalidPath(f"the percent escapes of {excerpt(path)} are not UTF-8")
    if _CONTROL.search(plain):
        raise InvalidPath(f"{excerpt(path)} contains a control character")
    if "\\" in plain:
        raise InvalidPath(f"{excerpt(path)} contains a backslash")
    # Checked raw and decoded: an escaped scheme or slash must not pass what a bare one does not.
    if plain.startswith("/") or _SCHEME.match(plain):
        raise _absolute(path)
    for form in (path, plain):
        segments = form.split("/")
        if any(segment in ("", ".", "..") for segment in segments):
            raise InvalidPath(f"{excerpt(path)} contains an empty, '.' or '..' segment")
        # Some stores do not tell case apart.
        if segments[0].lower() == LOG_FOLDER:
            raise InvalidPath(f"{excerpt(path)} lies under {LOG_FOLDER}, where only the log may be")


def check_anywhere(path: str) -> None:
    """As `check`, but a path may be absolute, too, as those of a shallow clone are. Whether a table
    may have files in that place is for the caller to judge."""
    root = _ROOT.match(path)
    if root is None:
        check(path)
        return
    # Only ASCII is before what is checked as any other path is.
    if len(path.encode("utf-8", "surrogatepass")) > MAX_PATH_BYTES:
        raise InvalidPath(f"the path is longer than {MAX_PATH_BYTES} bytes")
    inner = path[root.end() :]
    check(inner)
    if LOG_FOLDER in decode(inner).lower().split("/"):
        raise InvalidPath(f"{excerpt(path)} lies under {LOG_FOLDER}, where only the log may be")


def is_absolute(path: str) -> bool:
    """Whether a path that `check_anywhere` takes is absolute."""
    return _ROOT.match(path) is not None


def _check_uri(path: str) -> None:
    legal = _URI_PATH.match(path)
    at = len(path) if legal is None else legal.end()
    # Printable characters are of none of the categories, so most paths are not gone through.
    if not path[:at].isprintable():
        spaces = (
            found
            for found, character in enumerate(path[:at])
            if unicodedata.category(character) in _NOT_IN_URIS
        )
        at = next(spaces, at)
    if at < len(path):
        raise InvalidPath(
            f"{excerpt(path)} is not a URI: {path[at]!r} at {at} must be percent-encoded"
        )


def _absolute(path: str) -> InvalidPath:
    return InvalidPath(f"{excerpt(path)} is absolute; expected a path relative to the table")
