"""A local folder as a root: `LocalFiles`, run in threads."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Thread
from typing import BinaryIO

from tidegate_protocol.base.text import excerpt
from tidegate_protocol.log.content import Content
from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.core.ports.checkpoints import WrittenFile
from tidegate_service.core.ports.store.data_files import DataFiles
from tidegate_service.core.ports.store.listing import LogEntry
from tidegate_service.core.ports.store.put_result import PutResult
from tidegate_service.core.ports.store.storage import DatedFile
from tidegate_service.core.sharing.pools import Pool, Share
from tidegate_service.storage.limits import DEFAULTS, StorageLimits
from tidegate_service.storage.local.data_files import LocalDataFiles
from tidegate_service.storage.local.files import LocalFiles, why
from tidegate_service.storage.local.staged import StagedFile, link, replace
from tidegate_service.storage.roots import Hides, ReadFile, up_to
from tidegate_service.storage.steps import result, yielded

FEW = 32
"""Files of one call that do not wait behind the calls of more."""
QUICK_BYTES = 256 * 1024
"""Of a file that is said to have no more, reading it keeps nobody waiting for long."""
LOOK_S = 2.0
"""For so long a start waits to be told whether there is a folder."""
READERS = 2
WRITERS = 2


class LocalRoot:
    """A folder that exists, by its canonical `file:///` URL; implements `roots.Root`. `mode` is as
    of `LocalFiles`."""

    def __init__(self, url: str, *, mode: int = 0o777, limits: StorageLimits = DEFAULTS) -> None:
        path = Path(url.removeprefix("file://"))
        if not _is_folder(path):
            raise StorageUnavailable(
                f"{excerpt(url)} cannot be used to keep tables: it is expected to be an "
                "existing folder that this process may read and write"
            )
        self._url = url
        self._limits = limits
        self._files = LocalFiles(path, mode=mode, limits=limits)
        self._reading = Pool("local-reads", READERS)
        # One small file at a time is written, read or looked for by every commit to a plain table.
        self._one = ThreadPoolExecutor(4, thread_name_prefix="tidegate-one-file")
        self._writing = Pool("local-writes", WRITERS)
        self._checkpoints = Pool("checkpoints", 1)
        # Many files at a time take theirs: in threads of their own, they keep nobody waiting who
        # writes or reads one, nor those who write a few.
        self._few = ThreadPoolExecutor(4, thread_name_prefix="tidegate-few-files")
        self._many = ThreadPoolExecutor(4, thread_name_prefix="tidegate-many-files")

    @property
    def url(self) -> str:
        return self._url

    @property
    def reading(self) -> Pool:
        return self._reading

    @property
    def checkpoints(self) -> Pool:
        return self._checkpoints

    def stage(self, path: str) -> StagedFile:
        return StagedFile(self._files, path)

    @property
    def has_links(self) -> bool:
        return True

    def link(self, folder: str, names: Sequence[tuple[str, str]]) -> Sequence[WrittenFile] | None:
        return link(self._files, folder, names)

    def replace(self, path: str, pieces: Iterable[bytes]) -> None:
        replace(self._files, path, pieces)

    async def put_if_absent(
        self,
        path: str,
        content: Content,
        *,
        create_folders: bool,
        who: str = "",
        may_hang: bool = False,
    ) -> PutResult:
        write = partial(self._files.put_if_absent, path, content, create_folders=create_folders)
        if may_hang:
            return await _apart(write)
        if len(content) > self._limits.large_bytes:
            return await self._writing.run(who, write)
        return await asyncio.get_running_loop().run_in_executor(self._one, write)

    async def put_in_order(
        self,
        folder: str,
        files: Sequence[tuple[str, Content]],
        *,
        create_folders: bool,
        within_s: float,
    ) -> Sequence[PutResult]:
        write = partial(
            self._files.put_in_order,
            folder,
            files,
            create_folders=create_folders,
            within_s=within_s,
        )
        if any(len(content) > self._limits.large_bytes for _, content in files):
            return await self._writing.run(folder, write)
        threads = self._few if len(files) <= FEW else self._many
        return await asyncio.get_running_loop().run_in_executor(threads, write)

    async def remove(self, folder: str, names: Sequence[str]) -> None:
        await self._writing.run("", partial(self._files.remove, folder, names))

    async def read(
        self, path: str, read: ReadFile, share: Share, *, most_bytes: int | None = None
    ) -> DatedFile | None:
        # What may be megabytes waits for its turn from the first step on.
        is_long = most_bytes is not None and most_bytes > QUICK_BYTES
        reading = self._files.read(path, up_to(most_bytes, read))
        return await result(reading, share, begin=None if is_long else self._one)

    def entries(
        self, folder: str, share: Share, *, after: str = ""
    ) -> AsyncIterator[Sequence[LogEntry]]:
        listing = self._files.entries(folder, who=share.who, after=after)
        return yielded(listing, share, begin=self._one)

    async def has_any(self, folder: str, share: Share) -> bool:
        return await share.run(_has_any, self._files, folder)

    def open(self, path: str) -> BinaryIO | None:
        return self._files.open(path)

    def data_files(self, table: str, hides: Hides, share: Share) -> DataFiles:
        return LocalDataFiles(self._files.folder, table.split("/"), hides, share)


def _is_folder(path: Path) -> bool:
    """A mount that hangs is taken for a folder: the probe says what it is, and ends no start."""
    found = [True]

    def look() -> None:
        found[:] = [path.is_dir()]

    # Whoever hangs there must not keep the process from ending, as a thread of a pool would.
    looking = Thread(target=look, name="tidegate-is-folder", daemon=True)
    looking.start()
    looking.join(LOOK_S)
    return found[0]


async def _apart(work: Callable[[], PutResult]) -> PutResult:
    """The result of work in a thread of its own, which does not keep the process from ending."""
    done = Future[PutResult]()
    # Whoever leaves does not stop it.
    done.set_running_or_notify_cancel()

    def do() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    Thread(target=do, name="tidegate-apart", daemon=True).start()
    return await asyncio.wrap_future(done)


def _has_any(files: LocalFiles, path: str) -> bool:
    try:
        with files.folder(path.split("/")) as folder, os.scandir(folder) as found:
            return any(found)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StorageUnavailable(f"a folder could not be listed: {why(error)}") from error
