"""The files of a shallow clone: those of its source, by absolute paths."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession

from tidegate.models import DataFile
from tidegate.spark.clone.source import CloneSource
from tidegate.spark.deletion_vectors.files import at_path, inlined, is_inline, path_of
from tidegate.spark.errors import UnsupportedTable
from tidegate.spark.storage.locations import (
    LOCAL,
    DataStore,
    absolute,
    hadoop_url,
    is_absolute,
    scheme_of,
)
from tidegate_protocol.log.actions import DeletionVector
from tidegate_protocol.log.codec import with_fields
from tidegate_protocol.log.paths import MAX_PATH_BYTES, decode, encode, identity

_THREADS = 16
_MOST_INLINE = 1 << 20
"""In bytes. A larger vector would make a commit that readers take long to open."""


def shallow_files(
    source: CloneSource, location: str | None, spark: SparkSession
) -> Sequence[DataFile]:
    """The source's files as a table at `location` names them, or a new one whose place is not known
    yet. A file of that table's own keeps the path that it has there.

    Raises `UnsupportedTable` for paths that are too long, and for deletion vectors that have to go
    into the log and are too large for it.
    """
    store = source.store(spark)
    own = None if location is None else f"{identity(location)}/"

    def named(file: DataFile) -> DataFile:
        vector = file.deletion_vector
        path = _path(file.path, source.location)
        changes: dict[str, object] = {"path": path if own is None else _within(path, own)}
        if vector is not None:
            changes |= {"deletionVector": _vector(file, vector, source, store)}
        if len(path.encode()) > MAX_PATH_BYTES:
            raise UnsupportedTable(
                f"the file {path} of {source.name} has a path of more than {MAX_PATH_BYTES} bytes",
                hint="clone it deep",
            )
        return with_fields(file, changes)

    with ThreadPoolExecutor(max_workers=_THREADS) as pool:
        return list(pool.map(named, source.files))


def _path(path: str, location: str) -> str:
    """An absolute path as an action has it. A URL stays as it is spelled; others are as Hadoop
    spells them, because Delta looks for what Spark says of a row's file."""
    plain = decode(path)
    if is_absolute(plain) and not plain.startswith("/"):
        return path
    url = hadoop_url(absolute(plain, location))
    return encode(url.replace("file:///", "file:/", 1) if scheme_of(url) == LOCAL else url)


def _within(path: str, own: str) -> str:
    found = identity(path)
    return encode(found.removeprefix(own)) if found.startswith(own) else path


def is_beside(file: str, vector: str) -> bool:
    """Whether the paths of a file and of its deletion vector are surely in the folder of the same
    table. A vector lies directly in a table's folder, or in one of a random prefix."""
    if is_absolute(file) != is_absolute(vector):
        return False
    folder = identity(vector).rpartition("/")[0]
    return not is_absolute(file) or identity(file).startswith(f"{folder}/")


def _vector(
    file: DataFile, vector: DeletionVector, source: CloneSource, store: DataStore
) -> DeletionVector:
    """The vector of a file. VACUUM keeps what other tables name by their files' paths, so a vector
    stays where it is only if it lies beside its file."""
    if is_inline(vector):
        return vector
    if is_beside(decode(file.path), path_of(vector)):
        return at_path(vector, _path(encode(path_of(vector)), source.location))
    if vector.size_in_bytes > _MOST_INLINE:
        raise UnsupportedTable(
            f"the file {file.path} of {source.name}, which is a shallow clone itself, has a "
            f"deletion vector of {vector.size_in_bytes} bytes; expected at most {_MOST_INLINE}, "
            "which go into the log of the clone",
            hint="purge the source (REORG TABLE ... APPLY (PURGE)) before, or clone it deep",
        )
    return inlined(vector, store)
