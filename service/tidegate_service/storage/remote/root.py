"""A bucket, or a prefix in one, as a root."""

import asyncio
import io
from collections.abc import AsyncIterator, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import BinaryIO
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError

from tidegate_protocol.log.content import Content, LogFile, Pieces
from tidegate_service.core.access.locations import PROBES
from tidegate_service.core.errors import StorageUnavailable, StorageUnknown, Unavailable
from tidegate_service.core.ports.checkpoints import WrittenFile
from tidegate_service.core.ports.store.data_files import DataFiles
from tidegate_service.core.ports.store.expired import DeletionRefused
from tidegate_service.core.ports.store.listing import LogEntry
from tidegate_service.core.ports.store.put_result import PutResult
from tidegate_service.core.ports.store.storage import DatedFile
from tidegate_service.core.sharing.pools import Pool, Share
from tidegate_service.core.sharing.shares import Shares, most_of_one
from tidegate_service.storage.limits import DEFAULTS, StorageLimits
from tidegate_service.storage.remote.advice import advised
from tidegate_service.storage.remote.data_files import RemoteDataFiles
from tidegate_service.storage.remote.failures import Failure, failure
from tidegate_service.storage.remote.file import RemoteFile
from tidegate_service.storage.remote.folder_pages import FolderPages, modified
from tidegate_service.storage.remote.staged import StagedObject, replace
from tidegate_service.storage.roots import Hides, ReadFile, one_by_one, unread
from tidegate_service.storage.steps import result
from tidegate_service.storage.stores import PUT_BYTES_A_S, open_clients

READERS = 4
"""Threads in which files are read a piece at a time, and mostly waited for."""
REMOVED_AT_ONCE = 16
"""Files that are deleted at a time: of those, any may be gone where the process ends meanwhile."""
ORDER_FOLDER = f"{PROBES}/order"
_FORBIDDEN = frozenset({401, 403})
_BUFFER = 1024 * 1024


class RemoteRoot:
    """A place in an object store, by its canonical URL; implements `roots.Root`.

    Every call ends within `limits.call_s`. What is raised says nothing of addresses and names; a
    note beside it tells whoever runs the service which setting to look at.
    """

    def __init__(
        self, url: str, options: Mapping[str, str], limits: StorageLimits = DEFAULTS
    ) -> None:
        """Connects nowhere yet. Raises `StorageUnavailable` for options that are not usable."""
        self._url = url
        self._prefix = urlsplit(url).path.removeprefix("/")
        self._limits = limits
        self._clients = open_clients(url, options)
        self._in_order: bool | None = None
        self._reading = Pool("store-reads", READERS)
        self._joining = Pool("store-writes", 1)
        self._joined = Shares(
            limits.joined_bytes, "bytes of large commits that are sent to the store"
        )
        self._checkpoints = Pool("checkpoints", 1)

    @property
    def url(self) -> str:
        return self._url

    @property
    def reading(self) -> Pool:
        return self._reading

    @property
    def checkpoints(self) -> Pool:
        return self._checkpoints

    def stage(self, path: str) -> StagedObject:
        return StagedObject(self._clients, self._key(path))

    @property
    def has_links(self) -> bool:
        return False

    def link(self, folder: str, names: Sequence[tuple[str, str]]) -> Sequence[WrittenFile] | None:
        """None: a store copies each byte, and keeps as many for each checkpoint."""
        return None

    def replace(self, path: str, pieces: Iterable[bytes]) -> None:
        with self._translated("write"):
            replace(self._clients, self._key(path), pieces)

    async def put_if_absent(
        self,
        path: str,
        content: Content,
        *,
        create_folders: bool,
        who: str = "",
        may_hang: bool = False,
    ) -> PutResult:
        """`create_folders` and `may_hang` have no meaning here: a key needs no folder, and a small
        file no thread."""
        del create_folders, may_hang
        if isinstance(content, bytes):
            return await self._put(path, content)
        with self._room(who or path.rpartition("/")[0], len(content)):
            return await self._put(path, await self._joining.run(who, _together, content))

    @contextmanager
    def _room(self, who: str, size: int) -> Iterator[None]:
        """Hold the memory for a content that is sent as a whole. Raises `StorageUnavailable` where
        too little is left, in all or for this principal, or table that is published.

        One that is larger than anybody's part of it is taken for as much: it is sent alone, rather
        than never. Small ones need no room: each of those who send them has but one at a time."""
        if size <= self._limits.large_bytes:
            yield
            return
        claimed = min(size, most_of_one(self._joined.most))
        try:
            self._joined.take(who, claimed)
        except Unavailable as refused:
            raise StorageUnavailable(refused.detail) from None
        try:
            yield
        finally:
            self._joined.give_back(who, claimed)

    async def _put(self, path: str, body: bytes) -> PutResult:
        try:
            put_s = self._limits.put_s + len(body) / PUT_BYTES_A_S
            async with asyncio.timeout(min(put_s, self._limits.call_s)):
                # Never in parts: only a single PUT can be conditional.
                await obstore.put_async(
                    self._clients.once,
                    self._key(path),
                    body,
                    mode="create",
                    use_multipart=False,
                )
        except TimeoutError:
            raise advised(
                StorageUnknown("the object store did not say in time whether it wrote"),
                Failure(status=None, code=None, kinds=("Timeout",)),
                self._clients,
            ) from None
        except (BaseError, OSError) as error:
            found = failure(error)
            if isinstance(error, AlreadyExistsError) and found.says_taken:
                return PutResult.EXISTS
            if found.refused:
                raise advised(
                    StorageUnavailable(f"the object store could not write: {found}"),
                    found,
                    self._clients,
                ) from None
            raise advised(
                StorageUnknown(f"the object store did not say whether it wrote: {found}"),
                found,
                self._clients,
            ) from None
        return PutResult.CREATED

    async def put_in_order(
        self,
        folder: str,
        files: Sequence[tuple[str, Content]],
        *,
        create_folders: bool,
        within_s: float,
    ) -> Sequence[PutResult]:
        async def put(name: str, content: Content) -> PutResult:
            return await self.put_if_absent(
                f"{folder}/{name}", content, create_folders=create_folders
            )

        return await one_by_one(put, files, within_s=within_s)

    async def remove(self, folder: str, names: Sequence[str]) -> None:
        for first in range(0, len(names), REMOVED_AT_ONCE):
            some = names[first : first + REMOVED_AT_ONCE]
            found = await asyncio.gather(
                *(self._remove(f"{folder}/{name}") for name in some), return_exceptions=True
            )
            for error in found:
                if isinstance(error, BaseException):
                    raise error

    async def _remove(self, path: str) -> None:
        try:
            async with asyncio.timeout(self._limits.call_s):
                await obstore.delete_async(self._clients.again, self._key(path))
        except FileNotFoundError as error:
            self._check_bucket(error, "delete")
        except (BaseError, OSError) as error:
            late = Failure(status=None, code=None, kinds=("Timeout",))
            found = late if isinstance(error, TimeoutError) else failure(error)
            if found.status in _FORBIDDEN:
                raise DeletionRefused(f"the object store does not delete: {found}") from None
            raise self._unavailable("delete", found) from None

    async def read(
        self, path: str, read: ReadFile, share: Share, *, most_bytes: int | None = None
    ) -> DatedFile | None:
        async with self._within("read"):
            try:
                found = await obstore.get_async(self._clients.again, self._key(path))
                size, modified_ms = found.meta["size"], modified(found.meta)
                if most_bytes is not None and size > most_bytes:
                    return DatedFile(unread(size, most_bytes), modified_ms)
                if size <= self._limits.large_bytes:
                    content = (await found.bytes_async()).to_bytes()
                    return DatedFile(_at_once(read(io.BytesIO(content), size)), modified_ms)
            except FileNotFoundError as error:
                self._check_bucket(error, "read")
                return None

        def in_pieces() -> Generator[None, None, DatedFile | None]:
            file = self.open(path)
            if file is None:
                return None
            with file:
                return DatedFile((yield from read(file, size)), modified_ms)

        # A large one takes its time, and each request for a piece of it has its own deadline.
        return await result(in_pieces(), share)

    async def entries(
        self, folder: str, share: Share, *, after: str = ""
    ) -> AsyncIterator[Sequence[LogEntry]]:
        """`share` has no use here: a listing comes page by page, and holds no thread."""
        del share
        pages = FolderPages(
            self._clients.again, self._key(folder), after=after, limits=self._limits
        )
        while True:
            async with self._within("list"):
                try:
                    page = await pages.next()
                except FileNotFoundError as error:
                    self._check_bucket(error, "list")
                    return
            if page is None:
                return
            if page:
                yield page

    async def has_any(self, folder: str, share: Share) -> bool:
        """`share` has no use here, as in `entries`."""
        del share
        prefix = self._key(folder)
        async with self._within("list"):
            try:
                async for page in obstore.list(self._clients.again, prefix):
                    # What some tools put in a folder's place is nothing in it.
                    if any(found["path"].startswith(f"{prefix}/") for found in page):
                        return True
            except FileNotFoundError as error:
                self._check_bucket(error, "list")
        return False

    def open(self, path: str) -> BinaryIO | None:
        key = self._key(path)
        with self._translated("read"):
            try:
                found = obstore.head(self._clients.again, key)
            except FileNotFoundError as error:
                self._check_bucket(error, "read")
                return None
        raw = RemoteFile(self._clients.again, key, size=found["size"], e_tag=found.get("e_tag"))
        return io.BufferedReader(raw, buffer_size=_BUFFER)

    def data_files(self, table: str, hides: Hides, share: Share) -> DataFiles:
        return RemoteDataFiles(
            self._clients.again,
            self._key(table),
            hides=hides,
            raised=self._unavailable,
            is_ordered=self._lists_in_order,
            share=share,
            limits=self._limits,
        )

    async def _lists_in_order(self) -> bool:
        """Whether names are listed in the order of their bytes, also where "/" is one of them, as
        S3 does; some of its kind list folder by folder. Found out once, by two empty files."""
        if self._in_order is None:
            for name in ("a-b", "a/b"):
                await self.put_if_absent(f"{ORDER_FOLDER}/{name}", b"", create_folders=True)
            found: list[str] = []
            prefix = self._key(ORDER_FOLDER)
            listing = obstore.list(self._clients.again, prefix, chunk_size=self._limits.listed)
            async with self._within("list"):
                async for chunk in listing:
                    found += [entry["path"].removeprefix(f"{prefix}/") for entry in chunk]
            self._in_order = found == sorted(found)
        return self._in_order

    def _key(self, path: str) -> str:
        return f"{self._prefix}/{path}" if self._prefix else path

    def _check_bucket(self, error: FileNotFoundError, verb: str) -> None:
        """A missing file is an answer; a missing bucket is not, though both are a 404."""
        found = failure(error)
        if found.no_bucket:
            raise self._unavailable(verb, found)

    def _unavailable(self, verb: str, found: Failure) -> StorageUnavailable:
        error = StorageUnavailable(f"the object store could not {verb}: {found}")
        return advised(error, found, self._clients)

    @contextmanager
    def _translated(self, verb: str) -> Iterator[None]:
        try:
            yield
        except (BaseError, OSError) as error:
            raise self._unavailable(verb, failure(error)) from None

    @asynccontextmanager
    async def _within(self, verb: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._limits.call_s):
                yield
        except (BaseError, OSError) as error:
            # TimeoutError is one of them.
            late = Failure(status=None, code=None, kinds=("Timeout",))
            found = late if isinstance(error, TimeoutError) else failure(error)
            raise self._unavailable(verb, found) from None


def _at_once(reading: Generator[None, None, bytes | LogFile]) -> bytes | LogFile:
    """What is there to be read already."""
    while True:
        try:
            next(reading)
        except StopIteration as end:
            found: bytes | LogFile = end.value
            return found


def _together(content: Pieces) -> bytes:
    # Joined, they would all be in memory twice.
    together = io.BytesIO()
    together.writelines(content.pieces())
    return together.getvalue()
