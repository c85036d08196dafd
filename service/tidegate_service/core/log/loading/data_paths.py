"""Which data files a table's log may name, where somebody else wrote the log, and which ones a
proposal may.

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
from tidegate_protocol.log.actions import Add, AddCDCFile, DeletionVector, Remove
from tidegate_protocol.log.paths import LOG_FOLDER, decode
from tidegate_service.core.access.locations import LocationPolicy
from tidegate_service.core.access.roles import EVERYTHING, Principal, Role
from tidegate_service.core.errors import Refused
from tidegate_service.core.ports.files.scanned import StoredFiles

# A path without any of these is a plain relative path, as nearly all are.
_SUSPECT = re.compile(rf"\A/|[:%]|\.\.|{LOG_FOLDER}", re.IGNORECASE)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
# Hadoop has several file systems for one store.
_SAME_STORE = {"s3a": "s3", "s3n": "s3"}
_LOCAL = "file://"
# Ids begin with the storage type. Inline vectors ("i") and those in a file of the table ("u") lie
# where they must, unless what is before a UUID's 20 characters may lead elsewhere; a digest may
# stand for any vector's id.
_is_suspect_vector = re.compile(r"[^iu]|u[^/.:%\\]*+[/.:%\\].{20}", re.DOTALL).match


class _Named(msgspec.Struct, rename="camel"):
    """Of an add what is checked, decoded in half the time of all of it."""

    path: str
    deletion_vector: DeletionVector | None = None


class _Line(msgspec.Struct):
    add: _Named


_LINES = msgspec.json.Decoder(_Line)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataPaths:
    """Checks the paths in the log of the table at `location`, a canonical URL. `reader` is the
    principal who is shown the paths, or shows them to others; None where nobody is shown them."""

    location: str
    policy: LocationPolicy
    reader: Principal | None

    def check(self, file: Add | Remove | _Named) -> None:
        """Raise `Refused` (`invalid-path`) where the file, or its deletion vector, lies where it
        must not."""
        if _SUSPECT.search(file.path):
            self._check(file.path)
        vector = _outer_vector(file)
        if vector is not None:
            self._check_vector(vector)

    def check_change_data(self, file: AddCDCFile) -> None:
        """The same of a file of change data, which lies in the table's own folder."""
        if not _SUSPECT.search(file.path):
            return
        self._check(file.path)
        if self._absolute(decode(file.path)) is not None:
            raise _refused(file.path, "it is absolute, and a file of change data")

    def check_stored(self, files: StoredFiles) -> None:
        """As `check`, of many files."""
        # Nearly always no path is suspect, and all are checked at once. The paths are decoded, and
        # a path that is plain when it is decoded is plain in the log.
        suspects = [
            place
            for place, vector in enumerate(files.vectors)
            if vector and _is_suspect_vector(vector)
        ]
        if _is_suspect("\n".join(files.paths)):
            suspects += [place for place, path in enumerate(files.paths) if _is_suspect(path)]
        for place in suspects:
            self.check(_LINES.decode(files.actions[place]).add)

    def _check(self, path: str) -> None:
        plain = decode(path)
        if plain == path and "%" in path:
            # Hadoop decodes them loosely: where they lead is not known here.
            raise _refused(path, "its percent escapes are not UTF-8")
        if ".." in plain.split("/"):
            raise _refused(path, "it has a '..' segment")
        absolute = self._absolute(plain)
        if absolute is None:
            folders = plain.split("/")[:1]
        else:
            allowed = (self.location, self.policy.warehouse, *self.policy.prefixes)
            if not any(absolute.startswith(f"{prefix}/") for prefix in allowed):
                raise _refused(
                    path,
                    "it lies outside the table, the warehouse and the places of the service's "
                    "setting allowed_locations",
                )
            self._check_right(path, absolute)
            # Also another table's log.
            folders = absolute.split("/")
        if LOG_FOLDER in (folder.lower() for folder in folders):
            raise _refused(path, f"it lies under {LOG_FOLDER}, where only the log may be")

    def _check_vector(self, vector: DeletionVector) -> None:
        path = vector.path_or_inline_dv
        if vector.storage_type != "p":
            raise _refused(path, "no deletion vector of the table's folder has such a name")
        self._check(path)
        if self._absolute(decode(path)) is None:
            raise _refused(path, "it is relative, and a deletion vector of type 'p'")

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
            if not self.location.startswith(_LOCAL):
                # Readers add the default file system of their own session.
                raise _refused(plain, "it is absolute, and does not say in which store it lies")
            return f"{_LOCAL}/{plain.lstrip('/')}"
        name, rest = scheme[1].lower(), plain[scheme.end() :]
        host = ""
        # `file:/x`, `file:///x` and `s3://bucket/x` all occur.
        if rest.startswith("//"):
            host, _, rest = rest[2:].partition("/")
        return f"{_SAME_STORE.get(name, name)}://{host}/{rest.lstrip('/')}"


def is_plain(file: Add | Remove) -> bool:
    """Whether `check` takes the file wherever the table lies: its path is an ordinary relative one,
    as nearly all are, found in a twentieth of the time."""
    return _SUSPECT.search(file.path) is None and _outer_vector(file) is None


def _outer_vector(file: Add | Remove | _Named) -> DeletionVector | None:
    """The file's deletion vector, unless it lies in the log or, by its name, in the table's
    folder."""
    vector = file.deletion_vector
    if vector is None or vector.storage_type == "i" or vector.is_inside:
        return None
    return vector


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
        f"the file {excerpt(path)} is named, which is not allowed: {why}",
        code=Code.INVALID_PATH,
    )
