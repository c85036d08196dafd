"""The `Storage` and `Log` ports over roots: folders and buckets that tables may live under."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import BinaryIO

from tidegate_protocol.base.problems import Code
from tidegate_protocol.base.text import excerpt
from tidegate_protocol.log.actions import Action
from tidegate_protocol.log.content import Content, LogFile
from tidegate_protocol.log.file_names import (
    checksum_name,
    commit_name,
    compacted_name,
    staged_version,
)
from tidegate_service.core.access.locations import canonical_url
from tidegate_service.core.errors import Refused, StorageUnavailable
from tidegate_service.core.log.files.log_file import FileMemory, read_file
from tidegate_service.core.ports.store.data_files import DataFiles
from tidegate_service.core.ports.store.data_names import is_hidden, is_in_log_below
from tidegate_service.core.ports.store.listing import LogEntry
from tidegate_service.core.ports.store.put_result import PutResult
from tidegate_service.core.ports.store.storage import DatedFile, UnreadableFile
from tidegate_service.core.sharing.pools import Pool
from tidegate_service.storage.checkpoints.apart.places import Places
from tidegate_service.storage.checkpoints.budget import Budget
from tidegate_service.storage.checkpoints.reading import checkpoint_actions
from tidegate_service.storage.expired import SIDECARS, ObjectExpiredLog
from tidegate_service.storage.limits import DEFAULTS, StorageLimits
from tidegate_service.storage.local.files import NotAFolder
from tidegate_service.storage.local.root import LocalRoot
from tidegate_service.storage.log_names import STAGED, holds_log
from tidegate_service.storage.logs_above import log_above
from tidegate_service.storage.manifests import ObjectManifests
from tidegate_service.storage.object_checkpoints import ObjectCheckpoints
from tidegate_service.storage.probing import Probing
from tidegate_service.storage.remote.root import RemoteRoot
from tidegate_service.storage.roots import Hides, ReadFile, Root, innermost
from tidegate_service.storage.stores import check_options

MANIFEST_WRITERS = 4


class ObjectLog:
    """The `_delta_log` of one table; implements `core.ports.index.Log`."""

    def __init__(
        self,
        root: Root,
        table: str,
        *,
        read: ReadFile,
        limits: StorageLimits,
        places: Places,
        who: str | None = None,
    ) -> None:
        self._root = root
        self._read = read
        self._who = who or ""
        self._share = root.reading.of(self._who)
        self._limits = limits
        self._checkpoints = Budget(limits.checkpoints)
        self._places = places
        self._folder = f"{table}/_delta_log"

    async def put_if_absent(self, version: int, content: Content) -> PutResult:
        # Only a table's first commit makes folders. Later a missing folder is a file system
        # that is not mounted, and a version written there would be lost to the log.
        return await self._root.put_if_absent(
            self._commit(version), content, create_folders=version == 0, who=self._who
        )

    async def put_in_order(
        self, commits: Sequence[tuple[int, Content]], *, within_s: float
    ) -> Sequence[PutResult]:
        files = [(commit_name(version), content) for version, content in commits]
        return await self._root.put_in_order(
            self._folder, files, create_folders=commits[0][0] == 0, within_s=within_s
        )

    async def put_checksum(self, version: int, content: bytes) -> PutResult:
        return await self._put_beside(checksum_name(version), content)

    async def put_compacted(self, first: int, last: int, content: bytes) -> PutResult:
        return await self._put_beside(compacted_name(first, last), content)

    async def _put_beside(self, name: str, content: bytes) -> PutResult:
        """Of a table that has commits."""
        return await self._root.put_if_absent(
            f"{self._folder}/{name}", content, create_folders=False, who=self._who
        )

    async def read(self, version: int) -> bytes | LogFile | None:
        return _content(await self.read_dated(version))

    async def read_dated(self, version: int) -> DatedFile | None:
        return await self._root.read(self._commit(version), self._read, self._share)

    async def holds(self, version: int) -> bool:
        path = self._commit(version)
        return await self._root.read(path, self._read, self._share, most_bytes=0) is not None

    async def read_staged(self, name: str, *, most_bytes: int) -> bytes | LogFile | None:
        if staged_version(name) is None:
            raise ValueError(f"{excerpt(name)} is no staged commit's name")
        path = f"{self._folder}/{STAGED}/{name}"
        return _content(await self._root.read(path, self._read, self._share, most_bytes=most_bytes))

    async def holds_anything(self, *, but_version: int | None = None) -> bool:
        """Also raises `Refused`, like `entries`."""
        but = None if but_version is None else commit_name(but_version)
        try:
            return await holds_log(self._root, self._folder, self._share, but=but)
        except NotAFolder as error:
            raise _unusable(error) from error

    def entries(self, *, behind: int | None = None) -> AsyncIterator[Sequence[LogEntry]]:
        """Also raises `Refused` where the location cannot be a folder under its root, for
        instance because a symbolic link leads away from it."""
        return self._entries(self._folder, after="" if behind is None else commit_name(behind))

    async def staged(self, versions: range) -> AsyncIterator[Sequence[LogEntry]]:
        """Also raises `Refused`, like `entries`."""
        # In the order of a listing, `<version>.` comes right before `<version>.<uuid>.json`.
        first, end = (f"{version:020d}." for version in (versions.start, versions.stop))
        async for batch in self._entries(f"{self._folder}/{STAGED}", after=first):
            yield [entry for entry in batch if staged_version(entry.name) in versions]
            if batch and batch[-1].name > end:
                return

    async def _entries(self, folder: str, *, after: str) -> AsyncIterator[Sequence[LogEntry]]:
        count = 0
        try:
            async for batch in self._root.entries(folder, self._share, after=after):
                count += len(batch)
                if count > self._limits.files:
                    raise UnreadableFile(
                        f"it has more than {self._limits.files} files, which are as many as are "
                        "read (max_log_files)"
                    )
                yield batch
        except NotAFolder as error:
            raise _unusable(error) from error

    async def read_file(self, name: str, *, most_bytes: int | None = None) -> bytes | None:
        """No more than `StorageLimits.small_bytes` are read of any file."""
        small = self._limits.small_bytes
        most = small if most_bytes is None else min(most_bytes, small)
        return await self._share.run(self._read_small, name, most)

    def checkpoint_actions(self, name: str) -> AsyncIterator[Sequence[Action]]:
        """Also raises `StorageUnavailable`."""
        return checkpoint_actions(
            self.open_file, name, self._checkpoints, self._share, self._places
        )

    def open_file(self, name: str) -> BinaryIO | None:
        """A file of the folder, or of `_sidecars` below it, to be read at any position; None
        where there is none. The caller closes it.

        Blocking, as is the file, which is meant for a thread of its own. It holds about a MiB
        at a time, whatever the file's size, and its methods raise `StorageUnavailable`. Raises
        `UnreadableFile` for a name that no such file can have.
        """
        return self._root.open(self._file(name))

    def _read_small(self, name: str, most: int) -> bytes | None:
        file = self.open_file(name)
        if file is None:
            return None
        with file:
            content = file.read(most + 1)
        if len(content) > most:
            raise UnreadableFile(
                f"{excerpt(name)} is expected to be a small file and has more than {most} bytes"
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
    """Tables under a warehouse and further prefixes; implements `core.ports.index.Storage`.

    A `file:///` URL names a folder that exists; what is made in it has the mode of `modes`, by
    that URL, or the usual one. `options` are the storage options of the settings.
    Connects nowhere before it is used. Raises `Refused` for a URL that is not one of
    `core.access.locations`, `StorageUnavailable` for a folder or options that cannot be used.
    """

    def __init__(
        self,
        warehouse: str,
        allowed_prefixes: Sequence[str] = (),
        options: Mapping[str, str] = MappingProxyType({}),
        *,
        modes: Mapping[str, int] = MappingProxyType({}),
        limits: StorageLimits = DEFAULTS,
    ) -> None:
        # Each once. One inside another is a place of its own, which may be another's mount.
        urls = list(dict.fromkeys(map(canonical_url, (warehouse, *allowed_prefixes))))
        check_options(options, urls)
        self._roots = tuple(_opened(url, options, modes, limits) for url in urls)
        self._limits = limits
        self._places = Places(limits.readers)
        # A manifest may be large, and others wait for the threads that read. Of each root, since a
        # store that hangs has all of its own.
        self._manifests = {url: Pool("manifests", MANIFEST_WRITERS) for url in urls}
        self._read_file = partial(
            read_file,
            max_bytes=limits.commit_bytes,
            max_actions=limits.actions,
            memory=FileMemory(),
            large_bytes=limits.large_bytes,
        )
        self._probing = Probing(self._roots, self._read_file, limits=limits)

    def log(self, location: str, *, who: str | None = None) -> ObjectLog:
        """Raises `Refused` for a location that is not canonical or lies outside every root, and
        `StorageUnavailable` for one in a root that a probe found unusable.

        The use cases have checked that; this is the last fence before the store.
        """
        root, table = self._place(location)
        return ObjectLog(
            root, table, read=self._read_file, limits=self._limits, places=self._places, who=who
        )

    def checkpoints(self, location: str, *, who: str | None = None) -> ObjectCheckpoints:
        """Raises `Refused` like `log`."""
        root, table = self._place(location)
        return ObjectCheckpoints(root, table, who=who)

    def data_files(
        self,
        location: str,
        *,
        partition_columns: Collection[str],
        has_iceberg: bool = False,
        is_shared: bool = False,
        who: str | None = None,
    ) -> DataFiles:
        """Raises `Refused` as `log` does."""
        root, table = self._place(location)
        hides: Hides = partial(
            is_hidden, partition_columns=frozenset(partition_columns), has_iceberg=has_iceberg
        )
        if is_shared:
            hides = partial(_hides_but_logs_below, hides)
        return root.data_files(table, hides, root.reading.of(who or ""))

    def _place(self, location: str) -> tuple[Root, str]:
        root = innermost(self._roots, location.rpartition("/")[0])
        if root is not None and canonical_url(location) == location:
            self._probing.check(root)
            # A table may be where an inner place is, and is reached through the outer one.
            self._probing.check(innermost(self._roots, location) or root)
            return root, location.removeprefix(f"{root.url}/")
        raise Refused(
            f"the location {excerpt(location)} is not in the warehouse or an allowed prefix",
            code=Code.INVALID_LOCATION,
        )

    def expired(self, location: str) -> ObjectExpiredLog:
        """Raises `Refused` like `log`."""
        root, table = self._place(location)
        return ObjectExpiredLog(root, f"{table}/_delta_log", max_files=self._limits.files)

    def manifests(self, location: str) -> ObjectManifests:
        """Raises `Refused` like `log`."""
        root, table = self._place(location)
        return ObjectManifests(root, table, self._manifests[root.url].of(table))

    async def log_above(
        self, location: str, *, but: Collection[str] = (), who: str | None = None
    ) -> str | None:
        """Also raises `Refused` like `log`, and for a log there that is a link."""
        self._place(location)
        check, within_s = self._probing.check, self._limits.above_s
        try:
            async with asyncio.timeout(within_s):
                return await log_above(self._roots, location, but=but, check=check, who=who or "")
        except TimeoutError:
            raise StorageUnavailable(
                f"the folders around {excerpt(location)} could not be looked through for logs "
                f"within {within_s:g} s"
            ) from None

    async def probe(self) -> None:
        await self._probing.probe()

    async def close(self) -> None:
        """End what a probe has begun: places that cannot be used are not tried any more."""
        await self._probing.close()


def _unusable(error: NotAFolder) -> Refused:
    return Refused(f"the location cannot be used: {error.detail}", code=Code.INVALID_LOCATION)


def _opened(
    url: str, options: Mapping[str, str], modes: Mapping[str, int], limits: StorageLimits
) -> Root:
    if url.startswith("file://"):
        return LocalRoot(url, mode=modes.get(url, 0o777), limits=limits)
    return RemoteRoot(url, options, limits)


def _hides_but_logs_below(hides: Hides, path: str) -> bool:
    if is_in_log_below(path):
        raise Refused(
            f"another table's log lies in the table's folder, at {excerpt(path)}: files that are "
            "nobody's by the one are the other's",
            code=Code.INVALID_LOCATION,
            hint="have an admin of everything ('*') vacuum it",
        )
    return hides(path)


def _content(found: DatedFile | None) -> bytes | LogFile | None:
    return None if found is None else found.content
