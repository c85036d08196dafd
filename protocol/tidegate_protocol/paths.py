"""File paths in actions: percent-encoded URI references (PROTOCOL.md, "Add File and Remove File").

Paths are compared in their decoded form: writers differ in what they escape, and two spellings
of one path are one file.
"""

import re
from urllib.parse import quote, unquote, unquote_to_bytes

MAX_PATH_BYTES = 1024

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
# What Hadoop's Path.toUri leaves alone; partition values of Hive-style folders arrive here
# already escaped once, and their "%" is escaped again.
_SAFE = "/!$&'()*+,;=:@-._~"


class InvalidPath(ValueError):
    """The path of a file action is not allowed; the message says why."""


def decode(path: str) -> str:
    """The path a store knows the file by: percent escapes decoded once."""
    return unquote(path) if "%" in path else path


def encode(path: str) -> str:
    """The path as an action carries it: the inverse of `decode`."""
    return quote(path, safe=_SAFE)


def check(path: str) -> None:
    """Raise `InvalidPath` unless `path` names a data file inside the table's folder.

    Absolute paths are refused here; a caller that allows some checks them itself before.
    """
    if not path:
        raise InvalidPath("the path is empty; expected a path relative to the table's location")
    if len(path.encode("utf-8", "surrogatepass")) > MAX_PATH_BYTES:
        raise InvalidPath(f"the path is longer than {MAX_PATH_BYTES} bytes")
    try:
        plain = unquote_to_bytes(path).decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidPath(f"the percent escapes of {path!r} are not UTF-8") from None
    if any(ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 for c in plain):
        raise InvalidPath(f"{path!r} contains a control character")
    if "\\" in plain:
        raise InvalidPath(f"{path!r} contains a backslash")
    # Judged raw and decoded: an escaped scheme or slash must not pass what a bare one does not.
    for form in (path, plain):
        if form.startswith("/") or _SCHEME.match(form):
            raise InvalidPath(f"{path!r} is absolute; expected a path relative to the table")
        segments = form.split("/")
        if any(segment in ("", ".", "..") for segment in segments):
            raise InvalidPath(f"{path!r} contains an empty, '.' or '..' segment")
        if segments[0] == "_delta_log":
            raise InvalidPath(f"{path!r} lies under _delta_log, where only the log may be")
