"""What a place that tables may live under can do; one implementation for local files, one for
object stores. Paths are relative to the root, `folder/.../name`."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import BinaryIO, Protocol, TypeVar

from tidegate_protocol.content import Content
from tidegate_service.core.errors import StorageUnavailable, StorageUnknown
from tidegate_service.core.ports import LogEntry, PutResult

LISTED_AT_ONCE = 1000

Name = TypeVar("Name")


async def one_by_one(
    put: Callable[[Name, Content], Awaitable[PutResult]],
    files: Sequence[tuple[Name, Content]],
    *,
    within_s: float,
) -> list[PutResult]:
    """`put_in_order` by means of single ones."""
    until = time.monotonic() + within_s
    results: list[PutResult] = []
    for name, content in files:
        if results and (results[-1] is PutResult.EXISTS or time.monotonic() > until):
            break
        try:
            results.append(await put(name, content))
        except (StorageUnavailable, StorageUnknown):
            if not results:
                raise
            break
    return results


class Root(Protocol):
    """Calls raise `StorageUnavailable` where they could not be made, unless they say more."""

    @property
    def url(self) -> str:
        """Canonical, without a trailing slash."""
        ...

    async def put_if_absent(
        self, path: str, content: Content, *, create_folders: bool
    ) -> PutResult:
        """Write a file durably unless its name is taken; tried exactly once.

        Raises `StorageUnavailable` where the file was certainly not written by this call and
        `StorageUnknown` where it may have been.
        """
        ...

    async def put_in_order(
        self,
        folder: str,
        files: Sequence[tuple[str, Content]],
        *,
        create_folders: bool,
        within_s: float,
    ) -> Sequence[PutResult]:
        """`put_if_absent` for files of one folder, as `core.ports.Log.put_in_order` says."""
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
