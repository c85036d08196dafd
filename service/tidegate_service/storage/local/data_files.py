"""The data files of a table in a local folder, listed and deleted in steps of some milliseconds.

Folders are opened one by one and never through a symbolic link, as in `files.py`; links and what
is no regular file are neither listed nor deleted. A name that is no UTF-8, which no log can hold,
is left alone, and so is what lies in more than `MOST_FOLDERS`: each stays open while those in it
are looked through, and the process may open only so many files.
"""

import errno
import os
import stat
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, suppress
from itertools import groupby, islice

from tidegate_protocol.base.problems import Code
from tidegate_service.core.errors import Refused, StorageUnavailable
from tidegate_service.core.ports.store.data_files import DataFile, Listed
from tidegate_service.core.ports.store.data_names import ICEBERG_FOLDER
from tidegate_service.core.sharing.pools import Share
from tidegate_service.core.sharing.spools import HELD_BYTES, SortedSpool
from tidegate_service.storage.local.files import NotAFolder
from tidegate_service.storage.steps import result, yielded

FILES_AT_ONCE = 256
"""Files that are looked at or deleted in one step."""
MOST_FOLDERS = 64
"""Of a table, one in the other."""
LEAST_PART = 32
"""Of the memory for names, such a part at least is each folder's, whatever those around it hold."""
_MAY_HIDE = "_."
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NOT_EMPTY = frozenset({errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.ENOTDIR})
_IN_THE_WAY = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_NO_FILE = frozenset({errno.ENOENT, errno.ENAMETOOLONG})

Opened = Callable[[list[str]], AbstractContextManager[int]]
"""Opens a folder below the root by its segments (`LocalFiles.folder`)."""


class LocalDataFiles:
    """Implements `core.ports.store.data_files.DataFiles` for the table at the segments `table`.
    `hides` says which relative paths are no data files. `names_at_once` are read, and handed out,
    in one step, and sorted in `held_bytes` of memory, those of folders that lie in each other
    together."""

    def __init__(
        self,
        opened: Opened,
        table: list[str],
        hides: Callable[[str], bool],
        share: Share,
        *,
        names_at_once: int = 4096,
        held_bytes: int = HELD_BYTES,
    ) -> None:
        self._at_once = names_at_once
        self._held_bytes = held_bytes
        self._opened = opened
        self._table = table
        self._hides = hides
        self._share = share

    async def ranges_at_once(self) -> int:
        # Each would read all folders.
        return 1

    def listed(self, *, after: str = "", until: str | None = None) -> AsyncIterator[Listed]:
        return yielded(self._listed(after, until), self._share)

    async def described(self, paths: Sequence[str]) -> Sequence[DataFile]:
        return await result(self._described(paths), self._share)

    async def delete(self, paths: Sequence[str]) -> None:
        for path in paths:
            if self._hides(path):
                raise ValueError(f"{path!r} is no data file")
        await result(self._delete(paths), self._share)

    async def remove_empty_folders(self, *, before_ms: int) -> int:
        return await result(self._remove_empty(before_ms), self._share)

    def _listed(self, after: str, until: str | None) -> Generator[Listed | None, None, None]:
        with _told("listed"), ExitStack() as stack:
            try:
                top = stack.enter_context(self._opened(self._table))
            except FileNotFoundError:
                return
            is_all = after == "" and until is None
            held: list[str] = []
            for paths in self._walk(top, "", MOST_FOLDERS, self._held_bytes):
                if is_all:
                    held += paths
                else:
                    held += [
                        path for path in paths if path > after and (until is None or path <= until)
                    ]
                while len(held) >= self._at_once:
                    yield Listed(paths=held[: self._at_once])
                    held = held[self._at_once :]
                if not paths:
                    yield None
            yield Listed(paths=held)

    def _walk(self, folder: int, prefix: str, levels: int, most_held: int) -> Iterator[list[str]]:
        """Paths in byte order, some at a time, and none at the end of each step of reading a
        folder. So many levels of folders are looked into."""
        # Closed with its folder: of the names of all of them, nothing would bound the memory.
        with closing(SortedSpool(who=self._share.who, most_held=most_held)) as names:
            with os.scandir(folder) as found:
                while entries := list(islice(found, self._at_once)):
                    names.add(self._named(entries, prefix))
                    yield []
            left = self._left(most_held, names)
            held: list[str] = []
            # Not some of them first, which would be held while those below are looked through.
            for name in names.lines():
                if name[-1] != "/":
                    held.append(prefix + name)
                    if len(held) == self._at_once:
                        yield held
                        held = []
                    continue
                yield held
                held = []
                below = _opened_below(folder, name[:-1]) if levels else None
                if below is not None:
                    try:
                        yield from self._walk(below, prefix + name, levels - 1, left)
                    finally:
                        os.close(below)
            yield held

    def _left(self, most_held: int, names: SortedSpool) -> int:
        """What of the memory is left for the folders in one whose names are held."""
        return max(self._held_bytes // LEAST_PART, most_held - names.reading_bytes)

    def _named(self, entries: Sequence["os.DirEntry[str]"], prefix: str) -> list[str]:
        """Files' names, and folders' with a slash behind them: so they sort as their paths do."""
        named = []
        for entry in entries:
            name = entry.name
            # The folder is not hidden itself.
            may_hide = name[0] in _MAY_HIDE or name == ICEBERG_FOLDER
            if may_hide and self._hides(prefix + name):
                continue
            if not (name.isascii() or _is_text(name)):
                continue
            if entry.is_file(follow_symlinks=False):
                named.append(name)
            elif entry.is_dir(follow_symlinks=False):
                named.append(f"{name}/")
        return named

    def _described(self, paths: Sequence[str]) -> Generator[None, None, Sequence[DataFile]]:
        found: list[DataFile] = []
        with _told("looked at"):
            # No regular file is below a link or a file, whoever looks for one.
            for folder, paths_here in self._by_folder(paths, passed_over=NotAFolder):
                yield
                for path, name in paths_here:
                    try:
                        seen = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    except OSError as error:
                        if error.errno not in _NO_FILE:
                            raise
                        continue
                    if stat.S_ISREG(seen.st_mode):
                        modified_ms = seen.st_mtime_ns // 1_000_000
                        found.append(
                            DataFile(path=path, size=seen.st_size, modified_ms=modified_ms)
                        )
        return found

    def _delete(self, paths: Sequence[str]) -> Generator[None, None, None]:
        with _told("deleted"):
            for folder, paths_here in self._by_folder(paths):
                yield
                for _, name in paths_here:
                    with suppress(FileNotFoundError):
                        os.unlink(name, dir_fd=folder)

    def _by_folder(
        self, paths: Sequence[str], *, passed_over: type[Exception] | tuple[()] = ()
    ) -> Iterator[tuple[int, Sequence[tuple[str, str]]]]:
        """Open folders, each with some of its paths and their last names; of one that is gone, or
        `passed_over` as what opening it raised, no paths."""
        split = [(path, *path.rpartition("/")[::2]) for path in paths]
        for folder, group in groupby(split, key=lambda each: each[1]):
            segments = folder.split("/") if folder else []
            with ExitStack() as stack:
                try:
                    opened = stack.enter_context(self._opened([*self._table, *segments]))
                except passed_over:
                    yield -1, ()
                    continue
                except OSError as error:
                    if error.errno not in _IN_THE_WAY:
                        raise
                    yield -1, ()
                    continue
                named = ((path, name) for path, _, name in group)
                while some := list(islice(named, FILES_AT_ONCE)):
                    yield opened, some

    def _remove_empty(self, before_ms: int) -> Generator[None, None, int]:
        with _told("removed"), ExitStack() as stack:
            try:
                top = stack.enter_context(self._opened(self._table))
            except FileNotFoundError:
                return 0
            return (yield from self._emptied(top, "", before_ms, MOST_FOLDERS, self._held_bytes))

    def _emptied(
        self, folder: int, prefix: str, before_ms: int, levels: int, most_held: int
    ) -> Generator[None, None, int]:
        count = 0
        with closing(SortedSpool(who=self._share.who, most_held=most_held)) as names:
            with os.scandir(folder) as found:
                is_more = True
                while is_more:
                    entries = list(islice(found, self._at_once))
                    names.add(
                        entry.name
                        for entry in entries
                        if entry.is_dir(follow_symlinks=False)
                        and _is_text(entry.name)
                        and not self._hides(prefix + entry.name)
                    )
                    # A step for each folder, also for one that is empty.
                    yield
                    is_more = len(entries) == self._at_once
            left = self._left(most_held, names)
            for name in names.lines():
                below = _opened_below(folder, name) if levels else None
                if below is None:
                    continue
                try:
                    # Before what is in it goes, which changes it.
                    changed_ms = os.fstat(below).st_mtime_ns // 1_000_000
                    count += yield from self._emptied(
                        below, f"{prefix}{name}/", before_ms, levels - 1, left
                    )
                finally:
                    os.close(below)
                if changed_ms < before_ms:
                    try:
                        os.rmdir(name, dir_fd=folder)
                        count += 1
                    except OSError as error:
                        if error.errno not in _NOT_EMPTY:
                            raise
        return count


class _told:
    """Turns `OSError` into what the port raises."""

    def __init__(self, verb: str) -> None:
        self._verb = verb

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, OSError):
            if error.errno in _IN_THE_WAY:
                raise Refused(
                    "the location cannot be used: a part of it is a symbolic link or no folder",
                    code=Code.INVALID_LOCATION,
                ) from error
            raise StorageUnavailable(
                f"data files could not be {self._verb}: {error.strerror}"
            ) from error


def _opened_below(folder: int, name: str) -> int | None:
    """None for one that is gone, or is a link by now."""
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except OSError as error:
        if error.errno not in _IN_THE_WAY:
            raise
        return None


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
