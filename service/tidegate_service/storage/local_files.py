"""Durable files under a local folder: what obstore does not do.

obstore's local `put` renames without fsync, so a machine that loses power can lose or tear a
file that was reported as written. A commit must survive that (promise I1). So a file is written
under a temporary name, synced, linked to its own name, which fails where the name is taken, and
its folder is synced. At no moment does the name stand for anything but the whole content.

Folders below the root are opened one by one, relative to each other, and never through a
symbolic link: nothing here can leave the root, even while somebody swaps folders for links.
"""

import errno
import os
import secrets
import stat
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from tidegate_service.core.errors import StorageUnavailable, StorageUnknown
from tidegate_service.core.ports import LogEntry, PutResult

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Without waiting: opening a named pipe would otherwise block until somebody writes to it.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# Answers of link(2) that say the name was not made. Any other (an I/O error, a network file
# system that timed out) leaves it open.
_LINK_REFUSED = frozenset(
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
    """Files under one root, named by relative paths `folder/.../name`. Blocking."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def put_if_absent(self, path: str, content: bytes, *, create_folders: bool) -> PutResult:
        """Write a file of at least one folder's depth, unless its name is taken.

        Either way the name is durable on return. The root itself is never created: a root that
        is missing is a file system that is not mounted. Raises `StorageUnavailable` where the
        file was certainly not written by this call, `StorageUnknown` where it may have been.
        """
        *folders, name = path.split("/")
        staged = f".tidegate-{secrets.token_hex(8)}.tmp"
        with ExitStack() as stack:
            try:
                # Beside the folder and not in it: whoever lists a log must not meet it.
                beside = stack.enter_context(self._open(folders[:-1], create=create_folders))
                folder = stack.enter_context(_open_child(beside, folders[-1], create_folders))
                stack.callback(_remove, staged, beside)
                _write(staged, content, beside)
            except OSError as error:
                raise StorageUnavailable(f"a file could not be written: {_why(error)}") from error
            try:
                os.link(staged, name, src_dir_fd=beside, dst_dir_fd=folder, follow_symlinks=False)
                result = PutResult.CREATED
            except FileExistsError:
                result = PutResult.EXISTS
            except OSError as error:
                kind = StorageUnavailable if error.errno in _LINK_REFUSED else StorageUnknown
                raise kind(f"a written file could not be named: {_why(error)}") from error
            try:
                # Also for EXISTS: whoever made the name may have died before this line, and
                # the caller is about to build on it.
                os.fsync(folder)
            except OSError as error:
                kind = StorageUnknown if result is PutResult.CREATED else StorageUnavailable
                raise kind(f"a folder could not be synced: {_why(error)}") from error
        return result

    def open(self, path: str) -> BinaryIO | None:
        """A regular file, to be read and closed by the caller; None where there is none.

        Raises `StorageUnavailable` where that cannot be said, or the name is no regular file.
        """
        *folders, name = path.split("/")
        try:
            with self._open(folders, create=False) as folder:
                file = os.open(name, _FILE, dir_fd=folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageUnavailable(f"a file could not be opened: {_why(error)}") from error
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise StorageUnavailable("a log file's name is taken by something that is no file")
        return os.fdopen(file, "rb")

    def read(self, path: str) -> bytes | None:
        """A file's content, which is durable from now on, whoever wrote it; None where there is
        none. Raises `StorageUnavailable` like `open`."""
        *folders, _ = path.split("/")
        found = self.open(path)
        if found is None:
            return None
        try:
            with found, self._open(folders, create=False) as folder:
                # Synced first, so that nobody acts on what a power failure could take back.
                os.fsync(found.fileno())
                os.fsync(folder)
                return found.read()
        except OSError as error:
            raise StorageUnavailable(f"a file could not be read: {_why(error)}") from error

    def entries(self, path: str) -> Generator[LogEntry]:
        """What lies directly in a folder and is no folder, in the byte order of the names; none
        where the folder is missing. Raises `StorageUnavailable`, in its form `NotAFolder` where
        something else stands in the way."""
        try:
            with self._open(path.split("/"), create=False) as folder:
                for name in sorted(os.listdir(folder), key=os.fsencode):
                    entry = _entry(name, folder)
                    if entry is not None:
                        yield entry
        except FileNotFoundError:
            return
        except OSError as error:
            raise StorageUnavailable(f"a folder could not be listed: {_why(error)}") from error

    @contextmanager
    def _open(self, folders: list[str], *, create: bool) -> Iterator[int]:
        with ExitStack() as stack:
            try:
                folder = os.open(self._root, _FOLDER)
            except OSError as error:
                raise StorageUnavailable(
                    f"the folder that tables are kept under could not be opened: {_why(error)}"
                ) from error
            stack.callback(os.close, folder)
            for name in folders:
                folder = stack.enter_context(_open_child(folder, name, create))
            yield folder


@contextmanager
def _open_child(parent: int, name: str, create: bool) -> Iterator[int]:
    if create:
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=parent)
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


def _entry(name: str, folder: int) -> LogEntry | None:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        # Removed since the folder was read, as log clean-up does.
        return None
    if stat.S_ISDIR(found.st_mode):
        return None
    return LogEntry(name=name, size=found.st_size, modified_ms=found.st_mtime_ns // 1_000_000)


def _write(name: str, content: bytes, folder: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, 0o666, dir_fd=folder), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _remove(name: str, folder: int) -> None:
    # One that stays behind is in nobody's way.
    with suppress(OSError):
        os.unlink(name, dir_fd=folder)


def _why(error: OSError) -> str:
    return error.strerror or type(error).__name__
