"""A local folder as a root: `LocalFiles`, run in threads."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from tidegate_protocol.text import excerpt
from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.core.ports import LogEntry, PutResult
from tidegate_service.storage.local_files import LocalFiles
from tidegate_service.storage.roots import LISTED_AT_ONCE


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

    @property
    def url(self) -> str:
        return self._url

    async def put_if_absent(self, path: str, content: bytes, *, create_folders: bool) -> PutResult:
        return await asyncio.to_thread(
            self._files.put_if_absent, path, content, create_folders=create_folders
        )

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
