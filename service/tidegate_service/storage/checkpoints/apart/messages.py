"""What the service and the process that reads a file say to each other, over a socket.

The service says `Begin`. The process asks for the file's bytes (`Asked`, answered by `Content`) and
tells its rows (`Rows`), until it has `Ended` or says why it cannot (`Refused`, `Failed`).
"""

import socket
from typing import Annotated, TypeVar

import msgspec

from tidegate_service.storage.limits import CheckpointLimits

M = TypeVar("M")

MOST_ASKED = 1024 * 1024
"""Bytes of a file in one answer."""
MOST_BYTES = 64 * 1024 * 1024
"""Of one message. Rows come in portions, or one alone, of which twice `CheckpointLimits.line_bytes`
may be a line."""
HEAD_BYTES = 4
PIECE = 1024 * 1024

Count = Annotated[int, msgspec.Meta(ge=0)]
"""A reader that a file has taken over may say what it will."""


class Begin(msgspec.Struct, tag=True, array_like=True):
    """The file `name` of `size` bytes is to be read; `left` is what it may become."""

    name: str
    size: int
    left: int
    limits: CheckpointLimits


class Content(msgspec.Struct, tag=True, array_like=True):
    data: bytes


class Ready(msgspec.Struct, tag=True, array_like=True):
    """The process is there, and waits for `Begin`."""


class Asked(msgspec.Struct, tag=True, array_like=True):
    offset: Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]
    size: Annotated[int, msgspec.Meta(ge=1, le=MOST_ASKED)]


class Rows(msgspec.Struct, tag=True, array_like=True):
    """Actions as lines of a log; none, where others may go on. `taken` of the budget went since the
    last ones."""

    lines: list[bytes]
    taken: Count


class Ended(msgspec.Struct, tag=True, array_like=True):
    taken: Count


class Refused(msgspec.Struct, tag=True, array_like=True):
    """The file cannot be read, or would become too large."""

    why: str
    is_too_large: bool
    taken: Count


class Failed(msgspec.Struct, tag=True, array_like=True):
    """A defect of the reader."""

    why: str


Told = Ready | Asked | Rows | Ended | Refused | Failed
_ENCODER = msgspec.msgpack.Encoder()


def framed(message: msgspec.Struct) -> bytearray:
    """The message as it is sent, its length before it."""
    content = bytearray(HEAD_BYTES)
    _ENCODER.encode_into(message, content, HEAD_BYTES)
    content[:HEAD_BYTES] = (len(content) - HEAD_BYTES).to_bytes(HEAD_BYTES, "big")
    return content


def send(connection: socket.socket, message: msgspec.Struct) -> None:
    """From the reader. Blocking."""
    connection.sendall(framed(message))


def receive(connection: socket.socket, decoder: msgspec.msgpack.Decoder[M]) -> M:
    """In the reader. Blocking; raises `EOFError` where the service has gone."""
    length = int.from_bytes(_exactly(connection, HEAD_BYTES), "big")
    return decoder.decode(_exactly(connection, length))


def _exactly(connection: socket.socket, size: int) -> bytearray:
    content = bytearray()
    while len(content) < size:
        piece = connection.recv(min(size - len(content), PIECE))
        if not piece:
            raise EOFError("the connection has ended")
        content += piece
    return content
