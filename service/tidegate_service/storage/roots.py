"""What a place that tables may live under can do; one implementation for local files, one for
object stores. Paths are relative to the root, `folder/.../name`."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Sequence
from typing import BinaryIO, Protocol, TypeVar

from tidegate_protocol.log.content import Content, LogFile
from tidegate_service.core.errors import StorageUnavailable, StorageUnknown
from tidegate_service.core.log.files.log_file import OversizedFile
from tidegate_service.core.ports.checkpoints import WrittenFile
from tidegate_service.core.ports.store.data_files import DataFiles
from tidegate_service.core.ports.store.listing import LogEntry
from tidegate_service.core.ports.store.put_result import PutResult
from tidegate_service.core.ports.store.storage import DatedFile
from tidegate_service.core.sharing.pools import Pool, Share

Name = TypeVar("Name")

ReadFile = Callable[[BinaryIO, int], Generator[None, None, bytes | LogFile]]
"""Reads an open file of about so many bytes, in steps, and blocks
(`core.log.files.log_file.read_file`)."""


def up_to(most_bytes: int | None, read: ReadFile) -> ReadFile:
    """`read`, and of a file of more than so many bytes nothing but its length."""
    if most_bytes is None:
        return read

    def read_up_to(file: BinaryIO, size: int) -> Generator[None, None, bytes | LogFile]:
        return unread(size, most_bytes) if size > most_bytes else (yield from read(file, size))

    return read_up_to


def unread(size: int, most_bytes: int) -> OversizedFile:
    """Of a file that was to have no more than `most_bytes`."""
    return OversizedFile(size, f"it has {size} bytes, and was to have {most_bytes} at most")


Hides = Callable[[str], bool]
"""Whether a path relative to a table is none of a data file."""


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


class Staged(Protocol):
    """A file of a root that has no name there yet. Blocking; for one thread at a time."""

    @property
    def file(self) -> BinaryIO:
        """Where its content is written."""
        ...

    def put(self) -> WrittenFile:
        """Give the file its name, durably, unless that is taken. Raises `StorageUnavailable` where
        it certainly was not, and `StorageUnknown` where it may have been."""
        ...

    def leave(self) -> None:
        """Release what is not its name's."""
        ...


class Root(Protocol):
    """Calls raise `StorageUnavailable` where they could not be made, unless they say more."""

    @property
    def url(self) -> str:
        """Canonical, without a trailing slash."""
        ...

    @property
    def reading(self) -> Pool:
        """Threads for what is long to read here; those of another root have their own, and do not
        wait for a store that hangs."""
        ...

    @property
    def checkpoints(self) -> Pool:
        """A thread in which checkpoints are written."""
        ...

    def stage(self, path: str) -> Staged:
        """Blocking: begin a file of a table's log."""
        ...

    @property
    def has_links(self) -> bool:
        """Whether `link` gives names here."""
        ...

    def link(self, folder: str, names: Sequence[tuple[str, str]]) -> Sequence[WrittenFile] | None:
        """Blocking: give files of a folder, each by its name, another name in it, too, durably;
        what they are. None where one is not there, cannot have another name, or where a new name
        is taken; then some may have got theirs. Raises `StorageUnknown` where a name may be
        there."""
        ...

    def replace(self, path: str, pieces: Iterable[bytes]) -> None:
        """Blocking: put a file in the place of the one of its name, durably and at once. Memory
        holds one of its pieces, and of a small file all.
        Raises `StorageUnavailable`, after which it may have been."""
        ...

    async def put_if_absent(
        self,
        path: str,
        content: Content,
        *,
        create_folders: bool,
        who: str = "",
        may_hang: bool = False,
    ) -> PutResult:
        """Write a file durably unless its name is taken; tried exactly once. Large ones wait for
        the turns of `who`. Where it `may_hang`, it is a small one, and keeps neither others nor the
        process from ending.

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
        """`put_if_absent` for files of one folder, as `core.ports.index.Log.put_in_order` says."""
        ...

    async def remove(self, folder: str, names: Sequence[str]) -> None:
        """Delete files of one folder, in this order where the store knows an order; those that are
        not there are passed over. Raises `DeletionRefused` where it is not allowed."""
        ...

    async def read(
        self, path: str, read: ReadFile, share: Share, *, most_bytes: int | None = None
    ) -> DatedFile | None:
        """The file, its content by `read`; None where there is none. `share` is of `reading`. One
        of more than `most_bytes` is looked at for its size alone."""
        ...

    def entries(
        self, folder: str, share: Share, *, after: str = ""
    ) -> AsyncIterator[Sequence[LogEntry]]:
        """The files directly in the folder, in batches, in the byte order of their names; only
        those behind the name `after`. `share` is of `reading`."""
        ...

    async def has_any(self, folder: str, share: Share) -> bool:
        """Whether anything lies in the folder or below it, by one look. `share` is of `reading`."""
        ...

    def open(self, path: str) -> BinaryIO | None:
        """Blocking: the file, to be read at any position in bounded memory and closed by the
        caller; None where there is none. Its methods raise `StorageUnavailable` too."""
        ...

    def data_files(self, table: str, hides: Hides, share: Share) -> DataFiles:
        """The data files of the table in this folder. `share` is of `reading`."""
        ...


def holds(root: Root, url: str) -> bool:
    """Whether a canonical URL is the root's, or lies in it."""
    return f"{url}/".startswith(f"{root.url}/")


def innermost(roots: Iterable[Root], url: str) -> Root | None:
    """The root that a canonical URL lies in, or is. Of those that lie in each other it is the inner
    one: that may be a mount of its own, or be reached through itself alone, as behind a link."""
    return max(
        (root for root in roots if holds(root, url)), key=lambda root: len(root.url), default=None
    )
