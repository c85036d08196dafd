"""Names of data files: which of them VACUUM looks at (Delta: `DeltaTableUtils.isHiddenDirectory`),
where a file that a log names lies, and which files a deletion vector may lie in."""

import posixpath
import re
import uuid
from collections.abc import Collection, Iterator

from tidegate_protocol.log.paths import LOG_FOLDER, identity

CHANGE_DATA = "_change_data"
"""Files of change data. No snapshot names them, so they live as long as the retention."""
_INDEX_FOLDER = "_delta_index"
ICEBERG_FOLDER = "metadata"
_Z85 = {
    character: value
    for value, character in enumerate(
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    )
}
_UUID_CHARACTERS = 20
MAX_LISTED_BYTES = 65 * 256
"""No listing has a longer path: a local one has a file in 64 folders of the table at most, and a
store's is far shorter."""
_WITH_OFFSET = re.compile(r"(.*)@[0-9]+", re.DOTALL)


def is_hidden(path: str, partition_columns: Collection[str], *, has_iceberg: bool = False) -> bool:
    """Whether a part of the path begins with `_` or `.`; folders of change data and of partitions
    by a column of such a name are not hidden. With Iceberg, one that is `metadata` is."""
    if has_iceberg and ICEBERG_FOLDER in path.split("/"):
        return True
    # Nearly every path is of this kind.
    if not ("/_" in path or "/." in path or "//" in path or path[:1] in ("_", ".", "/", "")):
        return path.endswith("/")
    return any(_hides(name, partition_columns) for name in path.split("/"))


def _hides(name: str, partition_columns: Collection[str]) -> bool:
    # Some stores do not tell case apart.
    if name in ("", ".", "..") or name.lower() == LOG_FOLDER:
        return True
    if not name.startswith(("_", ".")) or name.startswith((CHANGE_DATA, _INDEX_FOLDER)):
        return False
    return not any(name.startswith(f"{column}=") for column in partition_columns)


def is_in_log_below(path: str) -> bool:
    """Whether the path is, or is in, the log of another table, which lies in a folder of this
    one."""
    return any(name.lower() == LOG_FOLDER for name in path.split("/")[1:])


def within(path: str, location: str) -> str | None:
    """The path that a file named in the log has relative to the table at `location`, a canonical
    URL, as a file system reads it; None for one elsewhere. `path` is its `paths.identity`."""
    store, plain = _store_and_path(path)
    own_store, root = _store_and_path(identity(location))
    # A path without its store means this one.
    if store not in ("", own_store):
        return None
    if not plain.startswith("/"):
        plain = f"{root}/{plain}"
    # Two slashes in front would stay.
    plain = posixpath.normpath(f"/{plain.lstrip('/')}")
    return plain.removeprefix(f"{root}/") if plain.startswith(f"{root}/") else None


def _store_and_path(path: str) -> tuple[str, str]:
    """Of a URL and of a path; local files have no store, whatever host their URL names."""
    scheme, mark, rest = path.partition("://")
    if not mark or "/" in scheme:
        return "", path
    host, _, name = rest.partition("/")
    return "" if scheme.lower() == "file" else f"{scheme}://{host}".lower(), f"/{name}"


def is_usual(path: str) -> bool:
    """Whether a path in the index is, as it stands, the one that a listing has."""
    if path.startswith("/") or ":" in path or "//" in path:
        return False
    return not (path.startswith(".") or "/." in path)


def vector_files(vector: str) -> Iterator[str]:
    """The paths, as `within` takes them, of the files that a deletion vector with this id may
    lie in; none for one that lies in the log (PROTOCOL.md, "Deletion Vector Descriptor Schema").

    An id is the storage type, what it points to and, behind an `@`, an offset; but an `@` may also
    be of the id itself. Then both readings are given.
    """
    kind, named = vector[:1], vector[1:]
    readings = {named}
    if (found := _WITH_OFFSET.fullmatch(named)) is not None:
        readings.add(found[1])
    for reading in sorted(readings):
        if kind == "p":
            # Writers differ in whether they escape it.
            yield from dict.fromkeys((identity(reading), reading))
        elif kind == "u" and len(reading) >= _UUID_CHARACTERS:
            prefix, encoded = reading[:-_UUID_CHARACTERS], reading[-_UUID_CHARACTERS:]
            if (name := _uuid(encoded)) is not None:
                yield (
                    f"{prefix}/deletion_vector_{name}.bin"
                    if prefix
                    else (f"deletion_vector_{name}.bin")
                )


def _uuid(encoded: str) -> uuid.UUID | None:
    """Base85 as Z85 has it, five characters for four bytes."""
    decoded = bytearray()
    for start in range(0, _UUID_CHARACTERS, 5):
        number = 0
        for character in encoded[start : start + 5]:
            if character not in _Z85:
                return None
            number = number * 85 + _Z85[character]
        if number >= 2**32:
            return None
        decoded += number.to_bytes(4, "big")
    return uuid.UUID(bytes=bytes(decoded))
