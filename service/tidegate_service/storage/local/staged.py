"""Files of a log that are written piece by piece, and are there whole or not at all. Blocking.

One is written beside the log, under a name that nobody looks for, synced, and linked to its own
name, which fails where that is taken. Then its folder is synced.
"""

import os
import secrets
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import BinaryIO

from tidegate_protocol.log.paths import LOG_FOLDER
from tidegate_service.core.errors import StorageUnavailable, StorageUnknown
from tidegate_service.core.ports.checkpoints import WrittenFile
from tidegate_service.core.ports.store.manifests import MANIFEST, MANIFESTS
from tidegate_service.core.ports.store.put_result import PutResult
from tidegate_service.storage.local.files import NEW, LocalFiles, named, not_written, why


class StagedFile:
    """Implements `storage.roots.Staged`. Raises `StorageUnavailable` where it cannot be begun."""

    def __init__(self, files: LocalFiles, path: str) -> None:
        self._files = files
        *self._folders, self._name = path.split("/")
        # Nothing in a log has that name. A manifest's folders are made as they are needed.
        self._is_manifest = self._name == MANIFEST
        own = MANIFESTS if self._is_manifest else LOG_FOLDER
        self._beside = self._folders[: self._folders.index(own)]
        self._temporary = f".tidegate-{secrets.token_hex(8)}.tmp"
        try:
            with files.folder(self._beside, create=False) as beside:
                descriptor = os.open(self._temporary, NEW, files.mode & 0o666, dir_fd=beside)
        except OSError as error:
            raise not_written(error) from error
        self._file = os.fdopen(descriptor, "wb")

    @property
    def file(self) -> BinaryIO:
        return self._file

    def put(self) -> WrittenFile:
        is_below = self._folders[-1] != LOG_FOLDER
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            with (
                self._files.folder(self._beside, create=False) as beside,
                # A log may have no folder for sidecars yet. One that is missing itself is on a file
                # system that is not mounted.
                self._files.folder(self._folders[:-1], create=False) as above,
                self._files.child(above, self._folders[-1], is_below) as folder,
            ):
                result = named(self._temporary, self._name, folder, beside)
                try:
                    os.fsync(folder)
                except OSError as error:
                    raise StorageUnknown(f"a folder could not be synced: {why(error)}") from error
                found = os.stat(self._name, dir_fd=folder, follow_symlinks=False)
        except OSError as error:
            raise not_written(error) from error
        modified_ms = found.st_mtime_ns // 1_000_000
        return WrittenFile(result=result, size=found.st_size, modified_ms=modified_ms)

    def rename(self) -> None:
        """Give it its name in any case: whoever opens that meets this file or the one before."""
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            with (
                self._files.folder(self._beside, create=False) as beside,
                self._files.folder(self._folders, create=self._is_manifest) as folder,
            ):
                os.rename(self._temporary, self._name, src_dir_fd=beside, dst_dir_fd=folder)
                os.fsync(folder)
        except OSError as error:
            raise not_written(error) from error

    def leave(self) -> None:
        with suppress(OSError):
            self._file.close()
        # One that stays behind is in nobody's way.
        with (
            suppress(OSError, StorageUnavailable),
            self._files.folder(self._beside, create=False) as beside,
        ):
            os.unlink(self._temporary, dir_fd=beside)


def link(
    files: LocalFiles, path: str, names: Sequence[tuple[str, str]]
) -> Sequence[WrittenFile] | None:
    """`storage.roots.Root.link`: hard links, of which a file may have some ten thousand."""
    found: list[WrittenFile] = []
    try:
        with files.folder(path.split("/"), create=False) as folder:
            for name, new_name in names:
                try:
                    result = named(name, new_name, folder, folder)
                except StorageUnavailable:
                    return None
                if result is PutResult.EXISTS:
                    return None
                there = os.stat(new_name, dir_fd=folder, follow_symlinks=False)
                modified_ms = there.st_mtime_ns // 1_000_000
                found.append(
                    WrittenFile(result=result, size=there.st_size, modified_ms=modified_ms)
                )
            try:
                os.fsync(folder)
            except OSError as error:
                raise StorageUnknown(f"a folder could not be synced: {why(error)}") from error
    except OSError as error:
        raise not_written(error) from error
    return found


def replace(files: LocalFiles, path: str, pieces: Iterable[bytes]) -> None:
    """Put a file in the place of the one of its name. Raises `StorageUnavailable`."""
    staged = StagedFile(files, path)
    try:
        try:
            staged.file.writelines(pieces)
        except OSError as error:
            raise not_written(error) from error
        staged.rename()
    finally:
        staged.leave()
