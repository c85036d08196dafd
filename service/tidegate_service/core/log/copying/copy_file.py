"""Texts on the instance's disk, compressed, for as long as a log is copied and read."""

import os
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import zstandard

from tidegate_protocol.proposal.transaction import BYTES_AN_ACTION
from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.core.instance.copy_limits import CopyLimits
from tidegate_service.core.log.files.log_file import SpooledFile
from tidegate_service.core.sharing import offload

# How many bytes follow, and how many they are when they are inflated.
_HEAD = struct.Struct("<II")
_LEVEL = 1


class CopyFile:
    """A file that goes with the process. `who` is in whose name it counts against `limits`. Texts
    are added by one task at a time; large ones are handled in threads."""

    def __init__(self, limits: CopyLimits, *, who: str | None) -> None:
        self._limits = limits
        self._who = who
        with _disk():
            self._file = tempfile.TemporaryFile(prefix="tidegate-log-", buffering=0)  # noqa: SIM115
        self._size = 0

    def __enter__(self) -> "CopyFile":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._limits.give_back(self._who, self._size)
        self._size = 0

    async def add(self, text: bytes) -> int:
        """Its place. Raises `StorageUnavailable` where the disk, or the caller's share, has no
        room."""
        stored = await offload.run(len(text) // BYTES_AN_ACTION, _deflated, text)
        place = self._take(len(stored))
        await offload.run(len(stored) // BYTES_AN_ACTION, self._write, stored, place)
        return place

    async def move_in(self, file: SpooledFile) -> None:
        """Have a large file read from here, and give back the memory that it took. Raises as
        `add`."""
        pieces = file.compressed()
        place = self._take(len(pieces))
        await offload.run(offload.HEAVY, self._write, pieces, place)
        file.moved_to(self._file, place)

    async def text(self, place: int) -> bytes:
        """What was added there."""
        with _disk():
            length, size = _HEAD.unpack(os.pread(self._file.fileno(), _HEAD.size, place))
        return await offload.run(
            size // BYTES_AN_ACTION, self._inflated, place + _HEAD.size, length
        )

    def _inflated(self, place: int, length: int) -> bytes:
        with _disk():
            data = os.pread(self._file.fileno(), length, place)
        return zstandard.decompress(data)

    def _take(self, size: int) -> int:
        self._limits.take(self._who, size)
        place = self._size
        self._size += size
        return place

    def _write(self, data: bytes | bytearray, place: int) -> None:
        left = memoryview(data)
        with _disk():
            while left:
                written = os.pwrite(self._file.fileno(), left, place)
                left, place = left[written:], place + written


@contextmanager
def _disk() -> Iterator[None]:
    """Raises `StorageUnavailable` for what the disk refuses."""
    try:
        yield
    except OSError as error:
        raise StorageUnavailable(
            "a copy of the table's log could not be kept in the folder for temporary files: "
            f"{error}"
        ) from error


def _deflated(text: bytes) -> bytes:
    data = zstandard.ZstdCompressor(level=_LEVEL, write_content_size=True).compress(text)
    return _HEAD.pack(len(data), len(text)) + data
