"""Durable files under a local folder: what obstore does not do.

obstore's local `put` renames without fsync, so a power failure can lose or tear a file that was
reported as written. A commit must survive that (promise I1). So a file is written under a temporary
name, synced, linked to its own name, which fails where the name is taken, and its folder is synced.

Folders below the root are opened one by one, relative to each other, never through a symbolic
link: nothing can leave the root, even while somebody swaps folders for links.
"""

import errno
import math
import os
import secrets
import stat
import time
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from tidegate_protocol.log.content import Content
from tidegate_service.core.errors import StorageUnavailable, StorageUnknown
from tidegate_service.core.ports.store.listing import LogEntry
from tidegate_service.core.ports.store.put_result import PutResult
from tidegate_service.core.ports.store.storage import DatedFile
from tidegate_service.storage.limits import DEFAULTS, StorageLimits
from tidegate_service.storage.local.listing import listed
from tidegate_service.storage.local.removing import remove
from tidegate_service.storage.roots import ReadFile

STAGED_AT_ONCE = 64
"""Files of one call that are written, and open, at a time."""
SYNCED_AT_ONCE = 4
"""Files of one call that are synced at a time, where one takes longer than
`StorageLimits.slow_s`."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Without waiting: opening a named pipe would otherwise block until somebody writes to it.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
# Answers of link(2) that say the name was not made. Any other (an I/O error, a network file
# system that timed out) leaves it open.
LINK_REFUSED = frozenset(
    {
        errno.EACCES,
        errno.EDQUOT,
        errno.EMLINK,
        errno.ENAMETOOLONG,
        errno.ENOENT,
        errno.ENOSPC,
        errno.ENOTDIR,
        errno.EPERM,
        errno.EROFS,
        errno.EXDEV,
    }
)
_NO_FOLDER = frozenset({errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR})


class NotAFolder(StorageUnavailable):
    """A part of the path is a symbolic link, a file, or no possible name of a folder."""


class LocalFiles:
    """Files under one root, named by relative paths `folder/.../name`. Blocking.

    `mode` is that of the folders made here, before the process's umask; files have it without the
    right to search.
    """

    def __init__(self, root: Path, *, mode: int = 0o777, limits: StorageLimits = DEFAULTS) -> None:
        self._limits = limits
        self._root = root
        self.mode = mode
        self._syncing = ThreadPoolExecutor(
            4 * SYNCED_AT_ONCE, thread_name_prefix="tidegate-syncing"
        )

    def put_if_absent(self, path: str, content: Content, *, create_folders: bool) -> PutResult:
        """Write a file of at least one folder's depth, unless its name is taken.

        Either way the name is durable on return. The root itself is never created: a root that
        is missing is a file system that is not mounted. Raises `StorageUnavailable` where the
        file was certainly not written by this call, `StorageUnknown` where it may have been.
        """
        folder, _, name = path.rpartition("/")
        (result,) = self.put_in_order(
            folder, [(name, content)], create_folders=create_folders, within_s=math.inf
        )
        return result

    def put_in_order(
        self,
        folder: str,
        files: Sequence[tuple[str, Content]],
        *,
        create_folders: bool,
        within_s: float,
    ) -> list[PutResult]:
        """Write files of one folder, name them one after the other, and sync the folder once.

        Ends behind the first whose name was taken, before one that cannot be written, and begins
        none after `within_s` seconds. Returns what became of those before that, and raises like
        `put_if_absent` where there are none. A file system that keeps the order of what is done
        in a folder, as those with a journal do, loses the newest names first in a power failure.
        """
        *above, last = folder.split("/")
        until = time.monotonic() + within_s
        results: list[PutResult] = []
        with ExitStack() as stack:
            try:
                # Beside the folder and not in it: whoever lists a log must not meet it.
                beside = stack.enter_context(self.folder(above, create=create_folders))
                opened = stack.enter_context(self.child(beside, last, create_folders))
            except OSError as error:
                raise not_written(error) from error
            try:
                for start in range(0, len(files), STAGED_AT_ONCE):
                    if results and time.monotonic() > until:
                        break
                    staged = files[start : start + STAGED_AT_ONCE]
                    with closing(self._put(staged, opened, beside, until)) as putting:
                        for result in putting:
                            results.append(result)
                    if results[-1] is PutResult.EXISTS:
                        break
            except (StorageUnavailable, StorageUnknown):
                if not results:
                    raise
            try:
                # Also for EXISTS: whoever made the name may have died before this line, and
                # the caller is about to build on it.
                os.fsync(opened)
            except OSError as error:
                created = PutResult.CREATED in results
                kind = StorageUnknown if created else StorageUnavailable
                raise kind(f"a folder could not be synced: {why(error)}") from error
        return results

    def open(self, path: str) -> BinaryIO | None:
        """A regular file, to be read and closed by the caller; None where there is none.

        Raises `StorageUnavailable` where that cannot be said, or the name is no regular file.
        """
        *folders, name = path.split("/")
        try:
            with self.folder(folders, create=False) as folder:
                file = os.open(name, _FILE, dir_fd=folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageUnavailable(f"a file could not be opened: {why(error)}") from error
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise StorageUnavailable("a log file's name is taken by something that is no file")
        return os.fdopen(file, "rb")

    def read(self, path: str, read: ReadFile) -> Generator[None, None, DatedFile | None]:
        """A file, durable from now on, whoever wrote it, its content by `read`; None where there is
        none. The first step of a large file opens it. Raises `StorageUnavailable` like `open`."""
        found = self.open(path)
        if found is None:
            return None
        try:
            with found, self.folder(path.split("/")[:-1], create=False) as folder:
                about = os.fstat(found.fileno())
                if about.st_size > self._limits.large_bytes:
                    yield
                # Synced first, so that nobody acts on what a power failure could take back.
                os.fsync(found.fileno())
                os.fsync(folder)
                content = yield from read(found, about.st_size)
                return DatedFile(content, about.st_mtime_ns // 1_000_000)
        except OSError as error:
            raise StorageUnavailable(f"a file could not be read: {why(error)}") from error

    def entries(
        self, path: str, *, who: str | None, after: str = ""
    ) -> Generator[list[LogEntry] | None, None, list[LogEntry]]:
        """What lies directly in a folder, as `listed` says; nothing where the folder is missing.
        Raises `StorageUnavailable`, in its form `NotAFolder` where something else stands in the
        way."""
        try:
            with self.folder(path.split("/"), create=False) as folder:
                return (
                    yield from listed(folder, after=after, who=who, at_once=self._limits.listed)
                )
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StorageUnavailable(f"a folder could not be listed: {why(error)}") from error

    def remove(self, folder: str, names: Sequence[str]) -> None:
        """Delete files of one folder, as `removing.remove` says."""
        try:
            with self.folder(folder.split("/"), create=False) as opened:
                remove(opened, names)
        except FileNotFoundError:
            return
        except OSError as error:
            raise StorageUnavailable(f"a folder could not be opened: {why(error)}") from error

    @contextmanager
    def folder(self, folders: list[str], *, create: bool = False) -> Iterator[int]:
        """An open folder below the root, alone: those above it are closed. Raises `OSError` where
        it is missing, and `NotAFolder` where something else stands in the way."""
        with ExitStack() as stack:
            try:
                folder = os.open(self._root, _FOLDER)
            except OSError as error:
                reason = f"the folder that tables are kept under could not be opened: {why(error)}"
                raise StorageUnavailable(reason) from error
            stack.callback(os.close, folder)
            for name in folders:
                with stack.pop_all():
                    folder = stack.enter_context(self.child(folder, name, create))
            yield folder

    @contextmanager
    def child(self, parent: int, name: str, create: bool) -> Iterator[int]:
        if create:
            with suppress(FileExistsError):
                os.mkdir(name, self.mode, dir_fd=parent)
            # Even where it exists: its maker may have died between the two.
            os.fsync(parent)
        try:
            folder = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=parent)
        except OSError as error:
            if error.errno in _NO_FOLDER:
                raise NotAFolder("a part of the path is a symbolic link or no folder") from error
            raise
        try:
            yield folder
        finally:
            os.close(folder)

    def _put(
        self, files: Sequence[tuple[str, Content]], folder: int, beside: int, until: float
    ) -> Generator[PutResult]:
        """Files that are whole and durable under their names, to the first that was taken; the
        names are not durable yet.

        Each step is done for all before the next one: the disk is busy with all of them when the
        first is waited for, and whoever named one in between would have the next sync write that
        name, too.
        """
        with ExitStack() as stack:
            staged: list[tuple[str, str, int]] = []
            failed: OSError | None = None
            for name, content in files:
                temporary = f".tidegate-{secrets.token_hex(8)}.tmp"
                try:
                    descriptor = os.open(temporary, NEW, self.mode & 0o666, dir_fd=beside)
                    stack.callback(_remove, temporary, descriptor, beside)
                    _write(descriptor, content)
                except OSError as error:
                    # Those before it are none the worse for it.
                    failed = error
                    break
                staged.append((name, temporary, descriptor))
            if len(staged) > 1:
                for _, _, descriptor in staged:
                    _begin_to_sync(descriptor)
            descriptors = [descriptor for _, _, descriptor in staged]
            synced, not_synced = _sync(descriptors, until, self._syncing, self._limits.slow_s)
            if synced < len(staged):
                failed = not_synced
            for name, temporary, _ in staged[:synced]:
                result = named(temporary, name, folder, beside)
                yield result
                if result is PutResult.EXISTS:
                    return
            if failed is not None:
                raise not_written(failed) from failed


def _sync(
    descriptors: Sequence[int], until: float, syncing: Executor, slow_s: float
) -> tuple[int, OSError | None]:
    """How many of the first files are on the disk, and what is wrong with the next one, if anything
    but the time. One by one while the disk answers at once, which costs least; one that is told
    to flush what it holds, once for each file, and takes its time does so for several at once."""

    def some(first: int, step: int, patience_s: float) -> tuple[int, OSError | None]:
        for place in range(first, len(descriptors), step):
            began = time.monotonic()
            if place and began > until:
                return place, None
            try:
                os.fsync(descriptors[place])
            except OSError as error:
                return place, error
            if time.monotonic() - began > patience_s:
                return place + 1, None
        return len(descriptors), None

    first, failed = some(0, 1, slow_s)
    lanes = min(SYNCED_AT_ONCE, len(descriptors) - first)
    if failed is not None or lanes == 0 or time.monotonic() > until:
        return first, failed
    if lanes == 1:
        return some(first, 1, math.inf)
    starts = range(first, first + lanes)
    return min(
        syncing.map(lambda start: some(start, lanes, math.inf), starts), key=lambda ended: ended[0]
    )


def named(temporary: str, name: str, folder: int, beside: int) -> PutResult:
    try:
        os.link(temporary, name, src_dir_fd=beside, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        return PutResult.EXISTS
    except OSError as error:
        kind = StorageUnavailable if error.errno in LINK_REFUSED else StorageUnknown
        raise kind(f"a written file could not be named: {why(error)}") from error
    return PutResult.CREATED


def not_written(error: OSError) -> StorageUnavailable:
    return StorageUnavailable(f"a file could not be written: {why(error)}")


def _write(descriptor: int, content: Content) -> None:
    for piece in [content] if isinstance(content, bytes) else content.pieces():
        left = memoryview(piece)
        while left:
            left = left[os.write(descriptor, left) :]


def _begin_to_sync(descriptor: int) -> None:
    # To give up what is cached of a file, Linux first starts to write what is not on the disk yet,
    # and waits for none of it. It is a hint and nothing more: `fsync` says whether all is there.
    if hasattr(os, "posix_fadvise"):
        with suppress(OSError):
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def _remove(name: str, descriptor: int, folder: int) -> None:
    # One that stays behind is in nobody's way.
    with suppress(OSError):
        os.unlink(name, dir_fd=folder)
    with suppress(OSError):
        os.close(descriptor)


def why(error: OSError) -> str:
    return error.strerror or type(error).__name__
