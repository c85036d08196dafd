"""An answer's head and the first bytes of its body, sent as one."""

from asyncio import AbstractEventLoop, Transport
from collections.abc import Callable

_CONTINUE = b"HTTP/1.1 100 "
_COPIED = 16 * 1024
"""Up to so many bytes, one buffer is made of two."""


class Joined:
    """A transport for one answer, whose head goes out together with the first bytes of its body:
    half as many packets, and half as often is the client woken up. `close` closes the
    transport."""

    __slots__ = ("_close", "_head", "_loop", "_transport")

    def __init__(
        self, transport: Transport, loop: AbstractEventLoop, *, close: Callable[[], None]
    ) -> None:
        self._close = close
        self._transport = transport
        self._loop = loop
        self._head: bytes | None = None

    def write(self, data: bytes) -> None:
        if self._head is None and not data.startswith(_CONTINUE):
            # Should no body follow within this turn of the loop, the head does not wait for it.
            self._head = data
            self._loop.call_soon(self.send_head)
        elif self._head:
            head, self._head = self._head, b""
            if len(data) <= _COPIED:
                self._transport.write(head + data)
            else:
                self._transport.writelines((head, data))
        else:
            self._transport.write(data)

    def close(self) -> None:
        self.send_head()
        self._close()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def send_head(self) -> None:
        """Send the answer's head now, unless it was sent."""
        if self._head:
            head, self._head = self._head, b""
            self._transport.write(head)
