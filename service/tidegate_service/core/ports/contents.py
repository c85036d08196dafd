"""The bytes of versions that the index keeps, whole where they are few."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from tidegate_protocol.log.content import LogFile
from tidegate_service.core.sharing.pools import Share

Turn = Callable[[], AbstractAsyncContextManager[None]]
"""A turn at the database."""


class LargeVersion(Protocol):
    """The bytes of a version of which none is held; `len` says how many there are."""

    def pieces(self, turn: Turn, threads: Share) -> AsyncGenerator[bytes, None]:
        """All of them in order, some hundred kilobytes at a time: read in turns, and expanded in
        these threads. Raises `IndexUnavailable`, before the last piece is given, where they are
        gone meanwhile or turn out not to be what was committed."""
        ...

    def __len__(self) -> int: ...


class ContentIndex(Protocol):
    """A part of `core.ports.index.Index`."""

    async def content(self, table_id: str, version: int) -> bytes | LargeVersion | None:
        """The bytes of a version that is held inline; None once it is forgotten."""

    async def kept_content(self, table_id: str, version: int) -> bytes | LargeVersion | None:
        """The bytes that the index keeps of a version, published or not."""

    async def stored_content(self, table_id: str, version: int) -> bytes | LogFile | None:
        """The same, of which large ones are held as they are stored, up to
        `log_file.MAX_STORED_BYTES`: for whoever goes through them more than once."""
