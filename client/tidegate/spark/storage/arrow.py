"""Data files through Arrow's file systems: those of the Python workers, which have no Hadoop.

Local files need nothing. For S3, a worker gets the `fs.s3a.*` settings that the Spark session had
when `tidegate.spark.register` was called; what they leave open is found as Arrow finds it, in the
worker's own environment, AWS profile or instance role.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType

import pyarrow.fs as pafs
import pyarrow.parquet as pq

from tidegate.spark.errors import StorageError, UnsupportedSession
from tidegate.spark.storage.errors import storage_refusal
from tidegate.spark.storage.locations import LOCAL, StoredFile, absolute, arrow_path, scheme_of

S3A_PREFIX = "fs.s3a."
_S3A_SETTINGS = (
    "access.key",
    "aws.credentials.provider",
    "connection.ssl.enabled",
    "endpoint",
    "endpoint.region",
    "path.style.access",
    "secret.key",
    "session.token",
)
_SCHEMES = ("s3", "s3a")
# Where an endpoint is given, the region is only a part of the signature.
_ANY_REGION = "us-east-1"


@dataclass(frozen=True, slots=True)
class S3Settings:
    """The `fs.s3a.*` settings of a Spark session that say how to reach S3, secrets among them."""

    values: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> "S3Settings":
        """From Hadoop's settings without the prefix `fs.s3a.`; those that say other things are
        left out."""
        return cls(
            {
                name: value
                for name, value in settings.items()
                if name in _S3A_SETTINGS
                or (name.startswith("bucket.") and name.endswith(_S3A_SETTINGS))
            }
        )

    def file_system(self, bucket: str) -> pafs.S3FileSystem:
        """As the settings have it for the bucket: its own come before those of all."""

        def get(name: str) -> str | None:
            own = self.values.get(f"bucket.{bucket}.{name}")
            return (own or self.values.get(name, "")).strip() or None

        endpoint = get("endpoint")
        return pafs.S3FileSystem(
            access_key=get("access.key"),
            secret_key=get("secret.key"),
            session_token=get("session.token"),
            anonymous="Anonymous" in (get("aws.credentials.provider") or ""),
            endpoint_override=endpoint,
            scheme="https" if _is_on(get("connection.ssl.enabled"), default=True) else "http",
            region=get("endpoint.region") or (None if endpoint is None else _ANY_REGION),
            force_virtual_addressing=not _is_on(get("path.style.access"), default=False),
        )


NO_SETTINGS = S3Settings(MappingProxyType({}))


class ArrowStore:
    """The files below a table's location (see `DataStore`)."""

    def __init__(self, location: str, settings: S3Settings = NO_SETTINGS) -> None:
        """Raises `UnsupportedSession` for a location that no Python worker can reach."""
        scheme = scheme_of(location)
        if scheme != LOCAL and scheme not in _SCHEMES:
            raise UnsupportedSession(
                f"the table lies at {location}; Python workers reach data files on file:// and "
                "s3:// only",
                hint="use Table.append, Table.overwrite and Table.read, which use Spark's own "
                "file systems",
            )
        self._location = location
        self._local = scheme == LOCAL
        self._root = arrow_path(location)
        self.file_system: pafs.FileSystem = (
            pafs.LocalFileSystem()
            if self._local
            else settings.file_system(self._root.partition("/")[0])
        )

    def check(self) -> None:
        """See `DataStore`."""
        with self.translated():
            self.file_system.get_file_info(self._root)

    def files(self, folder: str) -> list[StoredFile]:
        """See `DataStore`."""
        selector = pafs.FileSelector(f"{self._root}/{folder}", recursive=True, allow_not_found=True)
        with self.translated():
            found = self.file_system.get_file_info(selector)
        return [self._stored(info) for info in found if info.type is pafs.FileType.File]

    def exists(self, path: str) -> bool:
        """See `DataStore`."""
        with self.translated():
            found = self.file_system.get_file_info(self._anywhere(path))
        return found.type is pafs.FileType.File

    def content(self, file: StoredFile) -> bytes:
        """See `DataStore`."""
        with (
            self.translated(),
            self.file_system.open_input_stream(self._path(file.path), compression=None) as stream,
        ):
            return bytes(stream.read())

    def part(self, path: str, start: int, length: int) -> bytes:
        """See `DataStore`."""
        with (
            self.translated(),
            self.file_system.open_input_file(self._anywhere(path)) as file,
        ):
            file.seek(start)
            return bytes(file.read(length))

    def create(self, path: str, content: bytes) -> None:
        """See `DataStore`."""
        with self.translated():
            self.create_folder(self._path(path))
            with self.file_system.open_output_stream(self._path(path), compression=None) as stream:
                stream.write(content)

    def footer(self, file: StoredFile) -> pq.FileMetaData:
        """See `DataStore`."""
        with self.translated():
            return pq.read_metadata(self._anywhere(file.path), filesystem=self.file_system)

    def delete(self, path: str) -> None:
        """See `DataStore`."""
        with self.translated():
            try:
                self.file_system.delete_file(self._path(path))
            except FileNotFoundError:
                return

    def delete_folder(self, folder: str) -> None:
        """See `DataStore`."""
        with self.translated():
            try:
                self.file_system.delete_dir(self._path(folder))
            except FileNotFoundError:
                return

    def create_folder(self, path: str) -> None:
        """Make the folder that a file is to lie in; object stores have none."""
        if self._local:
            self.file_system.create_dir(path.rpartition("/")[0], recursive=True)

    def written(self, path: str) -> StoredFile:
        """What a file has become that was just written."""
        with self.translated():
            return self._stored(self.file_system.get_file_info(self._path(path)))

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Say what the storage said no with in the client's words. An `OSError` about local files
        stays what it is."""
        try:
            yield
        except OSError as error:
            if self._local:
                raise
            refusal = storage_refusal(str(error), url=self._location)
            raise refusal or StorageError(f"{self._location}: {error}") from error

    def _path(self, path: str) -> str:
        return f"{self._root}/{path}"

    def _anywhere(self, path: str) -> str:
        """A path that may be absolute. Raises `UnsupportedSession` for one of another kind of
        store."""
        url = absolute(path, self._location)
        if (scheme_of(url) == LOCAL) != self._local:
            raise UnsupportedSession(
                f"the table at {self._location} has the file {url}, which is in another store"
            )
        return arrow_path(url)

    def _stored(self, info: pafs.FileInfo) -> StoredFile:
        return StoredFile(
            path=info.path.removeprefix(f"{self._root}/"),
            size=info.size,
            modification_time=info.mtime_ns // 1_000_000,
        )


def _is_on(text: str | None, *, default: bool) -> bool:
    return default if text is None else text.lower() == "true"
