"""Which data files a table's log may name, where somebody else wrote the log.

A reader uses its own credentials for every path that the log names. So a log must not name files of
other tables' owners. A path stays inside the table's folder, or it is absolute. An absolute path
lies inside a prefix that the operator allows, or in a folder of the warehouse whose tables the
caller may read.
"""

import re
from dataclasses import dataclass

import msgspec

from tidegate_protocol.base.problems import Code
from tidegate_protocol.base.text import excerpt
from tidegate_protocol.log.actions import Add
from tidegate_protocol.log.paths import LOG_FOLDER, decode
from tidegate_service.core.access.locations import LocationPolicy
from tidegate_service.core.access.roles import EVERYTHING, Principal, Role
from tidegate_service.core.errors import Refused
from tidegate_service.core.ports.scanned import StoredFiles

# A path without any of these is a plain relative path, as nearly all are.
_SUSPECT = re.compile(rf"\A/|[:%]|\.\.|{LOG_FOLDER}", re.IGNORECASE)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
# Hadoop has several file systems for one store.
_SAME_STORE = {"s3a": "s3", "s3n": "s3"}
_ABSOLUTE_VECTOR = "p"
# The id of an absolute vector begins with its storage type; a digest may stand for any vector's id.
_of_key = re.compile(rf"{_ABSOLUTE_VECTOR}|sha256:").match


class _Line(msgspec.Struct):
    add: Add


_LINES = msgspec.json.Decoder(_Line)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataPaths:
    """Checks the paths in the log of the table at `location`, a canonical URL. `reader` is the
    principal who is shown the paths, or shows them to others; None where nobody is."""

    location: str
    policy: LocationPolicy
    reader: Principal | None

    def check(self, add: Add) -> None:
        """Raise `Refused` (`invalid-path`) where the file, or its deletion vector, lies where it
        must not."""
        if _SUSPECT.search(add.path):
            self._check(add.path)
        vector = add.deletion_vector
        if vector is not None and vector.storage_type == _ABSOLUTE_VECTOR:
            self._check(vector.path_or_inline_dv)

    def check_stored(self, files: StoredFiles) -> None:
        """As `check`, of many files."""
        # All at once where no path is suspect, as nearly always. These paths are decoded: a path
        # that is plain decoded is plain in the log.
        if not _is_suspect("\n".join(files.paths)) and not any(map(_of_key, files.vectors)):
            return
        for path, vector, line in zip(files.paths, files.vectors, files.actions, strict=True):
            if _is_suspect(path) or _of_key(vector):
                self.check(_LINES.decode(line).add)

    def _check(self, path: str) -> None:
        plain = decode(path)
        if ".." in plain.split("/"):
            raise _refused(path, "it has a '..' segment")
        absolute = self._absolute(plain)
        if absolute is None:
            folders = plain.split("/")[:1]
        else:
            allowed = (self.location, self.policy.warehouse, *self.policy.prefixes)
            if not any(absolute.startswith(f"{prefix}/") for prefix in allowed):
                raise _refused(path, "it lies outside the table and the allowed prefixes")
            self._check_right(path, absolute)
            # Also another table's log.
            folders = absolute.split("/")
        if LOG_FOLDER in (folder.lower() for folder in folders):
            raise _refused(path, f"it lies under {LOG_FOLDER}, where only the log may be")

    def _check_right(self, path: str, absolute: str) -> None:
        if self.reader is None or self.reader.may_everywhere(Role.READER):
            return
        if absolute.startswith(f"{self.location}/"):
            return
        scope = self.policy.scope_of(_folder(absolute))
        if scope is not None and not self.reader.may(Role.READER, scope):
            of = "everything ('*')" if scope == EVERYTHING else scope
            raise _refused(
                path,
                "it lies in a folder of the warehouse that is another's, and the principal "
                f"{self.reader.name!r} is no reader of {of}",
            )

    def _absolute(self, plain: str) -> str | None:
        """An absolute path as the URL it means; None for a relative one."""
        scheme = _SCHEME.match(plain)
        if scheme is None:
            if not plain.startswith("/"):
                return None
            root, _, _ = self.location.partition("://")
            host = self.location.removeprefix(f"{root}://").partition("/")[0]
            return f"{root}://{host}/{plain.lstrip('/')}"
        name, rest = scheme[1].lower(), plain[scheme.end() :]
        host = ""
        # `file:/x`, `file:///x` and `s3://bucket/x` all occur.
        if rest.startswith("//"):
            host, _, rest = rest[2:].partition("/")
        return f"{_SAME_STORE.get(name, name)}://{host}/{rest.lstrip('/')}"


def _folder(absolute: str) -> str:
    """The folder of a file, without the segments that a reader may ignore."""
    root, _, rest = absolute.partition("://")
    *segments, _ = (part for part in rest.split("/") if part not in ("", "."))
    return f"{root}://{'/' if rest.startswith('/') else ''}{'/'.join(segments)}"


def _is_suspect(lines: str) -> bool:
    """Whether `_SUSPECT` may match one of the lines, found in a tenth of the time."""
    return (
        any(mark in lines for mark in (":", "%", "..", "\n/"))
        or lines.startswith("/")
        or LOG_FOLDER in lines.lower()
    )


def _refused(path: str, why: str) -> Refused:
    return Refused(
        f"the log names the file {excerpt(path)}, which is not allowed: {why}",
        code=Code.INVALID_PATH,
    )
