"""The service's end of the socket to a reader.

It waits for a moment at a time. So a reader that hangs takes no thread from others, and one whose
caller has left is ended at once.
"""

import socket
import time
from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import TypeVar

import msgspec

from tidegate_service.storage.checkpoints.apart.messages import (
    HEAD_BYTES,
    MOST_BYTES,
    PIECE,
    Told,
    framed,
)

T = TypeVar("T")

MOMENT_S = 0.01
"""A reader that works tells something about as often."""

Pauses = Generator[Sequence[bytes], None, T]
"""What yields nothing where others may go on, and returns a `T`."""
_NOTHING: Sequence[bytes] = ()
_TOLD: msgspec.msgpack.Decoder[Told] = msgspec.msgpack.Decoder(Told)


class Garbled(Exception):
    """A reader says what none says, or too much; the message tells what."""


class Connection:
    """Raises `EOFError` or `ConnectionError` where the reader has gone, and `TimeoutError` where
    it takes `silence_s` for a message."""

    def __init__(self, end: socket.socket, *, silence_s: float) -> None:
        end.settimeout(MOMENT_S)
        self._end = end
        self._silence_s = silence_s

    def send(self, message: msgspec.Struct) -> Pauses[None]:
        until_s = time.monotonic() + self._silence_s
        content = memoryview(framed(message))
        while content:
            sent = yield from _patiently(partial(self._end.send, content[:PIECE]), until_s)
            content = content[sent:]

    def receive(self) -> Pauses[Told]:
        """Also raises `Garbled`."""
        until_s = time.monotonic() + self._silence_s
        length = int.from_bytes((yield from self._exactly(HEAD_BYTES, until_s)), "big")
        if length > MOST_BYTES:
            raise Garbled(f"a message of {length} bytes")
        content = yield from self._exactly(length, until_s)
        try:
            return _TOLD.decode(content)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise Garbled(str(error)) from None

    def _exactly(self, size: int, until_s: float) -> Pauses[bytearray]:
        content = bytearray()
        while len(content) < size:
            most = min(size - len(content), PIECE)
            piece = yield from _patiently(partial(self._end.recv, most), until_s)
            if not piece:
                raise EOFError("the connection has ended")
            content += piece
        return content


def _patiently(act: Callable[[], T], until_s: float) -> Pauses[T]:
    """The result of what raises `TimeoutError` after a moment."""
    while True:
        try:
            return act()
        except TimeoutError:
            if time.monotonic() > until_s:
                raise
        yield _NOTHING
