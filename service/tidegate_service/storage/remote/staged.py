"""Files of a log that are written piece by piece and sent as a whole. Blocking.

They wait in a file without a name on this machine's disk. A small one is sent by one conditional
request. A larger one goes up in parts, which no store joins on a condition: its name is looked for
before. Then two writers of one name leave one of the two, each whole, and both are checkpoints of
the same version; names with a UUID in them are nobody else's.
"""

import os
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from typing import BinaryIO

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError

from tidegate_service.core.errors import StorageUnavailable, StorageUnknown
from tidegate_service.core.ports.checkpoints import WrittenFile
from tidegate_service.core.ports.store.put_result import PutResult
from tidegate_service.storage.remote.advice import advised
from tidegate_service.storage.remote.failures import failure
from tidegate_service.storage.remote.folder_pages import modified
from tidegate_service.storage.stores import Clients

AT_ONCE_BYTES = 16 * 1024 * 1024
PART_BYTES = 8 * 1024 * 1024
PARTS_AT_ONCE = 4


class StagedObject:
    """Implements `storage.roots.Staged`."""

    def __init__(self, clients: Clients, key: str) -> None:
        self._clients = clients
        self._key = key
        try:
            descriptor, name = tempfile.mkstemp(prefix="tidegate-")
            os.unlink(name)
            self._file = os.fdopen(descriptor, "w+b")
        except OSError as error:
            raise StorageUnavailable(
                "a checkpoint waits on this machine's disk until it is sent, and no file could be "
                f"made there: {error.strerror}"
            ) from error

    @property
    def file(self) -> BinaryIO:
        return self._file

    def put(self) -> WrittenFile:
        try:
            self._file.flush()
            size = self._file.seek(0, os.SEEK_END)
            self._file.seek(0)
            result = self._send(size)
            found = obstore.head(self._clients.again, self._key)
        except (BaseError, OSError) as error:
            raise self._failed(error) from None
        return WrittenFile(
            result=result,
            size=found["size"],
            modified_ms=modified(found),
        )

    def leave(self) -> None:
        with suppress(OSError):
            self._file.close()

    def _send(self, size: int) -> PutResult:
        if size <= AT_ONCE_BYTES:
            content = self._file.read()
            try:
                obstore.put(
                    self._clients.once, self._key, content, mode="create", use_multipart=False
                )
            except AlreadyExistsError as error:
                if not failure(error).says_taken:
                    raise
                return PutResult.EXISTS
            return PutResult.CREATED
        with suppress(FileNotFoundError):
            obstore.head(self._clients.again, self._key)
            return PutResult.EXISTS
        obstore.put(
            self._clients.again,
            self._key,
            self._file,
            use_multipart=True,
            chunk_size=PART_BYTES,
            max_concurrency=PARTS_AT_ONCE,
        )
        return PutResult.CREATED

    def _failed(self, error: Exception) -> StorageUnavailable | StorageUnknown:
        found = failure(error)
        if found.refused:
            unavailable = StorageUnavailable(f"the object store could not write: {found}")
            return advised(unavailable, found, self._clients)
        unknown = StorageUnknown(f"the object store did not say whether it wrote: {found}")
        return advised(unknown, found, self._clients)


def replace(clients: Clients, key: str, pieces: Iterable[bytes]) -> None:
    """Put an object in the place of the one of its name: a large one in parts, which become it
    together. Raises obstore's errors, and `OSError`."""
    with tempfile.SpooledTemporaryFile(max_size=AT_ONCE_BYTES, prefix="tidegate-") as file:
        file.writelines(pieces)
        size = file.tell()
        file.seek(0)
        if size <= AT_ONCE_BYTES:
            obstore.put(clients.again, key, file.read(), use_multipart=False)
            return
        obstore.put(
            clients.again,
            key,
            file,
            use_multipart=True,
            chunk_size=PART_BYTES,
            max_concurrency=PARTS_AT_ONCE,
        )
