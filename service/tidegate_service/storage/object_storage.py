"""The `Storage` and `Log` ports over obstore: one store per root that tables may live under."""

import asyncio
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import obstore
from obstore.exceptions import BaseError
from obstore.store import ObjectStore, from_url

from tidegate_protocol.log_files import (
    CheckpointFile,
    CommitFile,
    CompactedFile,
    MultiPartCheckpoint,
    V2Checkpoint,
    commit_name,
    parse,
)
from tidegate_protocol.problems import Code
from tidegate_protocol.text import excerpt
from tidegate_service.core.errors import Refused, StorageUnavailable, StorageUnknown
from tidegate_service.core.locations import canonical_url
from tidegate_service.core.ports import PutResult
from tidegate_service.storage.local_files import LocalFiles, NotAFolder

PROBE_FOLDER = ".tidegate-probe"
_LISTED_AT_ONCE = 1000
_COMMIT_OR_CHECKPOINT = (
    CommitFile,
    CompactedFile,
    CheckpointFile,
    MultiPartCheckpoint,
    V2Checkpoint,
)


@dataclass(frozen=True, slots=True)
class _Root:
    """The warehouse or another folder that tables may live under. Paths are relative to it."""

    url: str
    files: LocalFiles
    store: ObjectStore

    @classmethod
    def open(cls, url: str) -> "_Root":
        canonical = canonical_url(url)
        path = canonical.removeprefix("file://")
        try:
            # Canonical URLs are not percent-encoded; obstore decodes what it is given.
            store = from_url(f"file://{quote(path)}")
        except BaseError as error:
            raise StorageUnavailable(
                f"{excerpt(canonical)} cannot be used to keep tables: it is expected to be an "
                "existing folder that this process may read and write"
            ) from error
        return cls(canonical, LocalFiles(Path(path)), store)

    async def put_if_absent(self, path: str, content: bytes, *, create_folders: bool) -> PutResult:
        # Not obstore's put: it is not durable on local files.
        return await asyncio.to_thread(
            self.files.put_if_absent, path, content, create_folders=create_folders
        )

    async def read(self, path: str) -> bytes | None:
        # Settled first, so that a reader never acts on what a power failure could take back.
        if not await asyncio.to_thread(self.files.settle, path):
            return None
        with _translated("read"):
            try:
                found = await obstore.get_async(self.store, path)
                return (await found.bytes_async()).to_bytes()
            except FileNotFoundError:
                return None

    async def holds_log_file(self, folder: str) -> bool:
        if not await asyncio.to_thread(self.files.has_folder, folder):
            return False
        with _translated("list"):
            async for chunk in obstore.list(self.store, folder, chunk_size=_LISTED_AT_ONCE):
                names = (entry["path"].removeprefix(f"{folder}/") for entry in chunk)
                if any(isinstance(parse(name), _COMMIT_OR_CHECKPOINT) for name in names):
                    return True
        return False


class ObjectLog:
    """The `_delta_log` of one table; implements `core.ports.Log`."""

    def __init__(self, root: _Root, table: str) -> None:
        self._root = root
        self._folder = f"{table}/_delta_log"

    async def put_if_absent(self, version: int, content: bytes) -> PutResult:
        # Only a table's first commit makes folders. Later a missing folder is a file system
        # that is not mounted, and a version written there would be lost to the log.
        return await self._root.put_if_absent(
            self._path(version), content, create_folders=version == 0
        )

    async def read(self, version: int) -> bytes | None:
        return await self._root.read(self._path(version))

    async def holds_anything(self) -> bool:
        """Also raises `Refused` where the location cannot be a folder under its root, for
        instance because a symbolic link leads away from it."""
        try:
            return await self._root.holds_log_file(self._folder)
        except NotAFolder as error:
            raise Refused(
                f"the location cannot be used: {error.detail}", code=Code.INVALID_LOCATION
            ) from error

    def _path(self, version: int) -> str:
        return f"{self._folder}/{commit_name(version)}"


class ObjectStorage:
    """Tables under a warehouse and further prefixes; implements `core.ports.Storage`.

    The URLs name folders that exist. Raises `Refused` for a URL that is not one of
    `core.locations`, `StorageUnavailable` for a folder that cannot be opened.
    """

    def __init__(self, warehouse: str, allowed_prefixes: Sequence[str] = ()) -> None:
        self._warehouse = _Root.open(warehouse)
        self._roots = (self._warehouse, *map(_Root.open, allowed_prefixes))

    def log(self, location: str) -> ObjectLog:
        """Raises `Refused` for a location that is not canonical or lies outside every root.

        The use cases have checked that; this is the last fence before the file system.
        """
        for root in self._roots:
            if location.startswith(f"{root.url}/") and canonical_url(location) == location:
                return ObjectLog(root, location.removeprefix(f"{root.url}/"))
        raise Refused(
            f"the location {excerpt(location)} is not in the warehouse or an allowed prefix",
            code=Code.INVALID_LOCATION,
        )

    async def probe(self) -> None:
        path = f"{PROBE_FOLDER}/{secrets.token_hex(16)}"
        try:
            await self._write_twice(path)
        except StorageUnknown as error:
            raise StorageUnavailable(error.detail) from error

    async def _write_twice(self, path: str) -> None:
        root = self._warehouse
        first = await root.put_if_absent(path, b"first", create_folders=True)
        try:
            second = await root.put_if_absent(path, b"second", create_folders=True)
            found = await root.read(path)
        finally:
            await asyncio.to_thread(root.files.remove, path)
        if (first, second, found) != (PutResult.CREATED, PutResult.EXISTS, b"first"):
            raise StorageUnavailable(
                "the warehouse does not honour put-if-absent: of two writes of one new name the "
                f"first was {first.value}, the second {second.value}"
            )


@contextmanager
def _translated(verb: str) -> Iterator[None]:
    try:
        yield
    except (BaseError, OSError) as error:
        raise StorageUnavailable(
            f"the object store could not {verb}: {type(error).__name__}"
        ) from error
