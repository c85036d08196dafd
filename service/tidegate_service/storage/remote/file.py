"""A file of an object store, read at any position by ranged requests."""

import errno
import io
import os

import obstore
from obstore.exceptions import BaseError, PreconditionError
from obstore.store import ObjectStore

from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.storage.remote.failures import failure

READ_AT_ONCE = 8 * 1024 * 1024
"""Bytes of one request at most, so that each is answered within its deadline."""


class RemoteFile(io.RawIOBase):
    """Blocking. One version of the object: once it is replaced, reading it fails.

    Raises `StorageUnavailable` for a read that fails.
    """

    def __init__(self, store: ObjectStore, key: str, *, size: int, e_tag: str | None) -> None:
        super().__init__()
        self._store = store
        self._key = key
        self._size = size
        self._e_tag = e_tag
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        if start + offset < 0:
            # As for a local file.
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        self._position = start + offset
        return self._position

    def readinto(self, buffer: "bytearray | memoryview") -> int:  # type: ignore[override]
        view = memoryview(buffer).cast("B")
        end = min(self._position + len(view), self._position + READ_AT_ONCE, self._size)
        if end <= self._position:
            return 0
        content = self._range(self._position, end)
        if len(content) != end - self._position:
            raise StorageUnavailable(
                f"the object store could not read: of {end - self._position} bytes that were "
                f"asked for, {len(content)} came"
            )
        view[: len(content)] = content
        self._position = end
        return len(content)

    def readall(self) -> bytes:
        # Inherited, it would ask for a few KiB at a time.
        content = bytearray(max(self._size - self._position, 0))
        view = memoryview(content)
        while view:
            view = view[self.readinto(view) :]
        return bytes(content)

    def _range(self, start: int, end: int) -> bytes:
        try:
            found = obstore.get(
                self._store,
                self._key,
                options={"range": (start, end), "if_match": self._e_tag},
            )
            return bytes(found.bytes())
        except (PreconditionError, FileNotFoundError):
            raise StorageUnavailable(
                "the object store could not read: the file was replaced while it was read"
            ) from None
        except (BaseError, OSError) as error:
            raise StorageUnavailable(f"the object store could not read: {failure(error)}") from None
