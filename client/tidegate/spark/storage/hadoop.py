"""Data files through the file systems of the Spark session, with its settings and credentials.

It talks to Spark's JVM past its API: Hadoop's file systems have no other way in from Python.
"""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tidegate.spark.errors import StorageError, UnsupportedSession
from tidegate.spark.storage.arrow import S3A_PREFIX, S3Settings
from tidegate.spark.storage.errors import missing_file_system, storage_refusal
from tidegate.spark.storage.locations import StoredFile, absolute, hadoop_url
from tidegate_protocol.log.paths import LOG_FOLDER

_MAGIC = b"PAR1"
_TAIL = struct.Struct("<I4s")
_TAIL_BYTES = 1 << 16

JavaObject = Any
"""What stands for an object of the JVM: PySpark gives it no type."""


def jvm_of(spark: SparkSession) -> JavaObject:
    """The session's JVM. Raises `UnsupportedSession` for Spark Connect, whose is elsewhere."""
    gateway = getattr(spark, "_jvm", None)
    if gateway is None:
        raise UnsupportedSession(
            "this session is one of Spark Connect, which shows clients no file systems; tables on "
            "object stores need a classic session, or format('tidegate')"
        )
    return gateway


def java_class(jvm: JavaObject, name: str) -> JavaObject:
    """A class of the JVM by its whole name, asked for in one step: for each package that is named
    on the way, Py4J searches every jar of the class path, which takes one or two milliseconds."""
    return getattr(jvm, name)


@contextmanager
def active(spark: SparkSession) -> Iterator[None]:
    """Make the session that of the thread, as which Spark's parts outside of a DataFrame take it
    (streaming queries, the parser, the optimizer): only the thread that made a session has it from
    the start."""
    sessions = java_class(jvm_of(spark), "org.apache.spark.sql.classic.SparkSession")
    before = sessions.getActiveSession()
    sessions.setActiveSession(spark._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def s3_settings(spark: SparkSession) -> S3Settings:
    """The session's `fs.s3a.*` settings, for workers that have no Hadoop. A session of Spark
    Connect shows none."""
    if getattr(spark, "_jvm", None) is None:
        return S3Settings.of({})
    found = configuration_of(spark).getPropsWithPrefix(S3A_PREFIX)
    return S3Settings.of({str(name): str(value) for name, value in found.items()})


class HadoopStore:
    """The files below a table's location (see `DataStore`)."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        self._jvm = jvm_of(spark)
        self._configuration = configuration_of(spark)
        self._location = location
        self._root = hadoop_url(location)
        self._opened: JavaObject | None = None

    def check(self) -> None:
        """See `DataStore`."""
        log = self._path(LOG_FOLDER)
        with self._translated():
            try:
                self._system().getFileStatus(log)
            except Py4JError as error:
                if not _is_not_found(error):
                    raise

    def files(self, folder: str) -> list[StoredFile]:
        """See `DataStore`."""
        path = self._path(folder)
        found = []
        with self._translated():
            try:
                files = self._system().listFiles(path, True)
                while files.hasNext():
                    found.append(self._stored(files.next()))
            except Py4JError as error:
                if not _is_not_found(error):
                    raise
                return []
        return found

    def exists(self, path: str) -> bool:
        """See `DataStore`."""
        found = self._path_at(hadoop_url(absolute(path, self._location)))
        with self._translated():
            return bool(found.getFileSystem(self._configuration).exists(found))

    def content(self, file: StoredFile) -> bytes:
        """See `DataStore`."""
        return self.part(file.path, 0, file.size)

    def part(self, path: str, start: int, length: int) -> bytes:
        """See `DataStore`."""
        found = self._path_at(hadoop_url(absolute(path, self._location)))
        with self._translated():
            stream = found.getFileSystem(self._configuration).open(found)
            try:
                stream.seek(start)
                return bytes(stream.readNBytes(length))
            finally:
                stream.close()

    def create(self, path: str, content: bytes) -> None:
        """See `DataStore`."""
        with self._translated():
            stream = self._system().create(self._path(path), False)
            try:
                stream.write(content)
            finally:
                stream.close()

    def footer(self, file: StoredFile) -> pq.FileMetaData:
        """See `DataStore`."""
        tail = self.part(file.path, max(0, file.size - _TAIL_BYTES), min(file.size, _TAIL_BYTES))
        length, magic = _TAIL.unpack(tail[-_TAIL.size :].rjust(_TAIL.size, b"\0"))
        if magic != _MAGIC:
            url = hadoop_url(absolute(file.path, self._location))
            raise StorageError(f"{url} does not end, at byte {file.size}, as a Parquet file does")
        needed = length + _TAIL.size
        if needed > len(tail):
            tail = self.part(file.path, file.size - needed, needed)
        # Of a file, Arrow reads its end only; here, nothing else is there.
        return pq.read_metadata(pa.BufferReader(_MAGIC + tail[-needed:]))

    def delete(self, path: str) -> None:
        """See `DataStore`."""
        self._delete(self._path(path))

    def delete_folder(self, folder: str) -> None:
        """See `DataStore`."""
        self._delete(self._path(folder))

    def _delete(self, path: JavaObject) -> None:
        with self._translated():
            self._system().delete(path, True)

    def _system(self) -> JavaObject:
        if self._opened is None:
            root = self._path_at(self._root)
            self._opened = root.getFileSystem(self._configuration)
        return self._opened

    def _path(self, path: str) -> JavaObject:
        return self._path_at(f"{self._root}/{path}")

    def _path_at(self, url: str) -> JavaObject:
        return java_class(self._jvm, "org.apache.hadoop.fs.Path")(url)

    def _stored(self, status: JavaObject) -> StoredFile:
        # Hadoop spells an empty host in its own way, in both.
        root = str(self._path_at(self._root).toString())
        path = str(status.getPath().toString())
        return StoredFile(
            path=path.removeprefix(f"{root}/"),
            size=status.getLen(),
            modification_time=status.getModificationTime(),
        )

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (Py4JError, PySparkException) as error:
            refusal = translated(error, self._jvm, self._location)
            raise refusal or StorageError(f"{self._root}: {error}") from error


@contextmanager
def storage_errors(jvm: JavaObject, location: str) -> Iterator[None]:
    """Say what the storage said no with in the client's words; every other error stays."""
    try:
        yield
    except (Py4JError, PySparkException) as error:
        refusal = translated(error, jvm, location)
        if refusal is None:
            raise
        raise refusal from error


def translated(
    error: Exception, jvm: JavaObject, location: str
) -> StorageError | UnsupportedSession | None:
    """What the error says of the storage at a location; None where it is about something else."""
    url = hadoop_url(location)
    hadoop = str(java_class(jvm, "org.apache.hadoop.util.VersionInfo").getVersion())
    text = str(error)
    return missing_file_system(text, url=url, hadoop=hadoop) or storage_refusal(text, url=url)


def configuration_of(spark: SparkSession) -> JavaObject:
    """Hadoop's settings as the session's own jobs see them."""
    return spark._jsparkSession.sessionState().newHadoopConf()


def _is_not_found(error: Py4JError) -> bool:
    text = str(error)
    # Of a bucket that is not there, Hadoop raises a class of its own.
    return "java.io.FileNotFoundException" in text and "UnknownStoreException" not in text
