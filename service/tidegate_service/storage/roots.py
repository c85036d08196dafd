"""What a place that tables may live under can do; one implementation for local files, one for
object stores. Paths are relative to the root, `folder/.../name`."""

from collections.abc import AsyncIterator, Sequence
from typing import BinaryIO, Protocol

from tidegate_service.core.ports import LogEntry, PutResult

LISTED_AT_ONCE = 1000


class Root(Protocol):
    """Calls raise `StorageUnavailable` where they could not be made, unless they say more."""

    @property
    def url(self) -> str:
        """Canonical, without a trailing slash."""
        ...

    async def put_if_absent(self, path: str, content: bytes, *, create_folders: bool) -> PutResult:
        """Write a file durably unless its name is taken; tried exactly once.

        Raises `StorageUnavailable` where the file was certainly not written by this call and
        `StorageUnknown` where it may have been.
        """
        ...

    async def read(self, path: str) -> bytes | None:
        """The file's content; None where there is none."""
        ...

    def entries(self, folder: str) -> AsyncIterator[Sequence[LogEntry]]:
        """The files directly in the folder, in batches, in the byte order of their names."""
        ...

    def open(self, path: str) -> BinaryIO | None:
        """Blocking: the file, to be read at any position in bounded memory and closed by the
        caller; None where there is none. Its methods raise `StorageUnavailable` too."""
        ...
