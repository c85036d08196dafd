"""Where data files lie: one location in the vocabularies of Hadoop and Arrow, and what a store
has to do for a transaction's folder."""

import re
from dataclasses import dataclass
from typing import Protocol

import pyarrow.parquet as pq

from tidegate.spark.errors import UnsupportedTable

LOCAL = "file"
S3 = "s3"

_S3A = "s3a://"
_HADOOP_SCHEMES = {
    LOCAL: "file",
    S3: "s3a",
    "s3a": "s3a",
    "gs": "gs",
    "abfss": "abfss",
}
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?://)?(?P<rest>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file in a table's location: its decoded path relative to that, its size in bytes, and
    when it was written, in ms."""

    path: str
    size: int
    modification_time: int


class DataStore(Protocol):
    """The files below one table's location; every path is relative to it and not encoded.

    Raises `StorageError` where the storage refuses or cannot be reached.
    """

    def check(self) -> None:
        """Find out, before any work is done, whether the storage can be reached. Raises
        `UnsupportedSession`, too."""
        ...

    def files(self, folder: str) -> list[StoredFile]:
        """Every file below a folder; none where there is no such folder."""
        ...

    def exists(self, path: str) -> bool:
        """Whether there is a file; the path may be absolute, too."""
        ...

    def content(self, file: StoredFile) -> bytes: ...

    def footer(self, file: StoredFile) -> pq.FileMetaData:
        """Of a Parquet file."""
        ...

    def part(self, path: str, start: int, length: int) -> bytes:
        """So many bytes of a file, fewer at its end; the path may be absolute, too."""
        ...

    def create(self, path: str, content: bytes) -> None:
        """Write a new file."""
        ...

    def delete(self, path: str) -> None:
        """Delete a file. One that is not there is no error."""
        ...

    def delete_folder(self, folder: str) -> None:
        """Delete a folder with everything in it. One that is not there is no error."""
        ...


def scheme_of(url: str) -> str:
    """`file`, `s3` ..., in lower case. Raises `ValueError` for what is no absolute URL."""
    return _parts(url)[0]


def hadoop_url(url: str) -> str:
    """An absolute URL, without percent escapes, as Hadoop's file systems spell it.

    Raises `UnsupportedTable` for a scheme that none is known for.
    """
    scheme, rest = _parts(url)
    if scheme not in _HADOOP_SCHEMES:
        raise UnsupportedTable(
            f"expected data files on {sorted(_HADOOP_SCHEMES)}, found {url}, which this client "
            "has no file system for"
        )
    return f"{_HADOOP_SCHEMES[scheme]}://{rest}"


def arrow_path(url: str) -> str:
    """The path of an absolute URL inside Arrow's file system for its scheme: `/folder/file`, or
    `bucket/folder/file`."""
    return _parts(url)[1]


def place_url(place: str) -> str:
    """A location as the service has it: `file:///folder`, `s3://bucket/folder`."""
    plain = place.rstrip("/")
    if plain.startswith("file:"):
        plain = "/" + plain.removeprefix("file:").lstrip("/")
    if plain.startswith("/"):
        return f"file://{plain}"
    return f"s3://{plain.removeprefix(_S3A)}" if plain.startswith(_S3A) else plain


def is_absolute(path: str) -> bool:
    """Whether a decoded path of an action is a URL or a path from the root of its store."""
    return path.startswith("/") or _URL.fullmatch(path) is not None


def absolute(path: str, location: str) -> str:
    """The URL of a decoded path of an action in the table at a location: relative to that, from the
    root of its store, or a URL itself."""
    if not is_absolute(path):
        return f"{location}/{path}"
    if not path.startswith("/"):
        return path
    store = "/".join(location.split("/", 3)[:3])
    return f"{store}{path}"


def _parts(url: str) -> tuple[str, str]:
    found = _URL.fullmatch(url)
    if found is None:
        raise ValueError(f"expected a URL with a scheme, found {url!r}")
    scheme, rest = found["scheme"].lower(), found["rest"]
    return scheme, "/" + rest.lstrip("/") if scheme == LOCAL else rest
