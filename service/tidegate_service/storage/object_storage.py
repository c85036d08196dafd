"""The `Storage` and `Log` ports over roots: folders and buckets that tables may live under."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from types import MappingProxyType
from typing import BinaryIO

from tidegate_protocol.actions import Action
from tidegate_protocol.content import Content
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
from tidegate_service.core.ports import LogEntry, PutResult, UnreadableFile
from tidegate_service.storage.checkpoints import checkpoint_actions
from tidegate_service.storage.local_files import NotAFolder
from tidegate_service.storage.local_root import LocalRoot
from tidegate_service.storage.remote_root import RemoteRoot
from tidegate_service.storage.roots import Root
from tidegate_service.storage.stores import check_options

PROBE_FOLDER = ".tidegate-probe"
PROBE = f"{PROBE_FOLDER}/put-if-absent"
PROBE_ATTEMPTS = 3
SIDECARS = "_sidecars"
SMALL_FILE_BYTES = 64 * 1024 * 1024
"""The most that `ObjectLog.read_file` reads into memory."""
_COMMIT_OR_CHECKPOINT = (
    CommitFile,
    CompactedFile,
    CheckpointFile,
    MultiPartCheckpoint,
    V2Checkpoint,
)


class ObjectLog:
    """The `_delta_log` of one table; implements `core.ports.Log`."""

    def __init__(self, root: Root, table: str) -> None:
        self._root = root
        self._folder = f"{table}/_delta_log"

    async def put_if_absent(self, version: int, content: Content) -> PutResult:
        # Only a table's first commit makes folders. Later a missing folder is a file system
        # that is not mounted, and a version written there would be lost to the log.
        return await self._root.put_if_absent(
            self._commit(version), content, create_folders=version == 0
        )

    async def put_in_order(
        self, commits: Sequence[tuple[int, Content]], *, within_s: float
    ) -> Sequence[PutResult]:
        files = [(commit_name(version), content) for version, content in commits]
        return await self._root.put_in_order(
            self._folder, files, create_folders=commits[0][0] == 0, within_s=within_s
        )

    async def read(self, version: int) -> bytes | None:
        return await self._root.read(self._commit(version))

    async def holds_anything(self) -> bool:
        """Also raises `Refused`, like `entries`."""
        async for batch in self.entries():
            if any(isinstance(parse(entry.name), _COMMIT_OR_CHECKPOINT) for entry in batch):
                return True
        return False

    async def entries(self) -> AsyncIterator[Sequence[LogEntry]]:
        """Also raises `Refused` where the location cannot be a folder under its root, for
        instance because a symbolic link leads away from it."""
        try:
            async for batch in self._root.entries(self._folder):
                yield batch
        except NotAFolder as error:
            raise Refused(
                f"the location cannot be used: {error.detail}", code=Code.INVALID_LOCATION
            ) from error

    async def read_file(self, name: str) -> bytes | None:
        """Also raises `UnreadableFile` for more than `SMALL_FILE_BYTES`."""
        return await asyncio.to_thread(self._read_small, name)

    def checkpoint_actions(self, name: str) -> AsyncIterator[Sequence[Action]]:
        """Also raises `StorageUnavailable`."""
        return checkpoint_actions(self.open_file, name)

    def open_file(self, name: str) -> BinaryIO | None:
        """A file of the folder, or of `_sidecars` below it, to be read at any position; None
        where there is none. The caller closes it.

        Blocking, as is the file, which is meant for a thread of its own. It holds about a MiB
        at a time, whatever the file's size, and its methods raise `StorageUnavailable`. Raises
        `UnreadableFile` for a name that no such file can have.
        """
        return self._root.open(self._file(name))

    def _read_small(self, name: str) -> bytes | None:
        file = self.open_file(name)
        if file is None:
            return None
        with file:
            content = file.read(SMALL_FILE_BYTES + 1)
        if len(content) > SMALL_FILE_BYTES:
            raise UnreadableFile(
                f"{excerpt(name)} is expected to be a small file and has more than "
                f"{SMALL_FILE_BYTES} bytes"
            )
        return content

    def _commit(self, version: int) -> str:
        return f"{self._folder}/{commit_name(version)}"

    def _file(self, name: str) -> str:
        own = name.removeprefix(f"{SIDECARS}/")
        if own in ("", ".", "..", SIDECARS) or "/" in own or "\0" in own:
            raise UnreadableFile(f"{excerpt(name)} is not a name of a file in a log")
        return f"{self._folder}/{name}"


class ObjectStorage:
    """Tables under a warehouse and further prefixes; implements `core.ports.Storage`.

    A `file:///` URL names a folder that exists. `options` are the storage options of the
    settings. Connects nowhere before it is used. Raises `Refused` for a URL that is not one of
    `core.locations`, `StorageUnavailable` for a folder or options that cannot be used.
    """

    def __init__(
        self,
        warehouse: str,
        allowed_prefixes: Sequence[str] = (),
        options: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        # Each once: a prefix inside another, or the same one, is the same place.
        urls = list(dict.fromkeys(map(canonical_url, (warehouse, *allowed_prefixes))))
        check_options(options, urls)
        self._roots = tuple(_opened(url, options) for url in urls)
        self._probed: set[str] = set()

    def log(self, location: str) -> ObjectLog:
        """Raises `Refused` for a location that is not canonical or lies outside every root.

        The use cases have checked that; this is the last fence before the store.
        """
        for root in self._roots:
            if location.startswith(f"{root.url}/") and canonical_url(location) == location:
                return ObjectLog(root, location.removeprefix(f"{root.url}/"))
        raise Refused(
            f"the location {excerpt(location)} is not in the warehouse or an allowed prefix",
            code=Code.INVALID_LOCATION,
        )

    async def probe(self) -> None:
        for root in self._roots:
            if root.url in self._probed:
                await self._answers(root)
            else:
                await self._honours_put_if_absent(root)
                self._probed.add(root.url)

    async def _answers(self, root: Root) -> None:
        try:
            await root.put_if_absent(PROBE, b"", create_folders=True)
        except StorageUnknown as error:
            raise _unavailable(error) from error

    async def _honours_put_if_absent(self, root: Root) -> None:
        """A name that stays: a probe needs no right to delete, and leaves one file."""
        await _put(root, b"")
        before = await root.read(PROBE)
        second = await _put(root, secrets.token_bytes(16))
        after = await root.read(PROBE)
        async for _ in root.entries(PROBE_FOLDER):
            break
        if second is not PutResult.EXISTS or before is None or before != after:
            raise StorageUnavailable(
                f"{root.url} cannot be used to keep tables: it does not honour put-if-absent "
                "(a second write of one name is expected to be refused and was "
                f"{'made' if before != after else second.value}), so commits would overwrite "
                "each other"
            )


async def _put(root: Root, content: bytes) -> PutResult:
    """Other instances probe the same name, and a store may make them wait for each other."""
    for attempt in range(1, PROBE_ATTEMPTS + 1):
        try:
            return await root.put_if_absent(PROBE, content, create_folders=True)
        except StorageUnknown as error:
            if attempt == PROBE_ATTEMPTS:
                raise _unavailable(error) from error
    raise AssertionError("the last attempt either returns or raises")


def _opened(url: str, options: Mapping[str, str]) -> Root:
    if url.startswith("file://"):
        return LocalRoot(url)
    return RemoteRoot(url, options)


def _unavailable(error: StorageUnknown) -> StorageUnavailable:
    unavailable = StorageUnavailable(error.detail)
    for note in getattr(error, "__notes__", ()):
        unavailable.add_note(note)
    return unavailable
