"""A local folder as a root: `LocalFiles`, run in threads."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from tidegate_protocol.content import Content
from tidegate_protocol.text import excerpt
from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.core.ports import LogEntry, PutResult
from tidegate_service.storage.local_files import LocalFiles
from tidegate_service.storage.roots import LISTED_AT_ONCE

FEW = 32
"""Files of one call that do not wait behind the calls of more."""


class LocalRoot:
    """A folder that exists, by its canonical `file:///` URL; implements `roots.Root`."""

    def __init__(self, url: str) -> None:
        path = Path(url.removeprefix("file://"))
        if not path.is_dir():
            raise StorageUnavailable(
                f"{excerpt(url)} cannot be used to keep tables: it is expected to be an "
                "existing folder that this process may read and write"
            )
        self._url = url
        self._files = LocalFiles(path)
        # Many files at a time take theirs: in threads of their own, they keep nobody waiting who
        # writes or reads one, nor those who write a few.
        self._few = ThreadPoolExecutor(4, thread_name_prefix="tidegate-few-files")
        self._many = ThreadPoolExecutor(4, thread_name_prefix="tidegate-many-files")

    @property
    def url(self) -> str:
        return self._url

    async def put_if_absent(
        self, path: str, content: Content, *, create_folders: bool
    ) -> PutResult:
        return await asyncio.to_thread(
            self._files.put_if_absent, path, content, create_folders=create_folders
        )

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
        threads = self._few if len(files) <= FEW else self._many
        return await asyncio.get_running_loop().run_in_executor(threads, write)

    async def read(self, path: str) -> bytes | None:
        return await asyncio.to_thread(self._files.read, path)

    async def entries(self, folder: str) -> AsyncIterator[Sequence[LogEntry]]:
        listing = self._files.entries(folder)
        try:
            while batch := await asyncio.to_thread(lambda: [*islice(listing, LISTED_AT_ONCE)]):
                yield batch
        finally:
            listing.close()

    def open(self, path: str) -> BinaryIO | None:
        return self._files.open(path)
