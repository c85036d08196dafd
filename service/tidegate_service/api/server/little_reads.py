"""Reads that bring little, and complete no request.

A read costs the event loop about as much for one byte as for thousands, and a caller may deal out a
request, or empty lines, byte by byte on each of its connections. So after some such reads the
connection rests before the next one, which then brings what came meanwhile. Whoever sends faster
than that is read as fast as it sends.
"""

import asyncio
from asyncio import Transport

from tidegate_service.api.server.sliced_reads import ReadFlow

LITTLE_BYTES = 4096
"""So many bytes in one read make up for one that brought less."""
FREE = 16
"""Before the first rest: what a slow network brings of a body begins so."""
FIRST_REST_S = 0.01
LONGEST_REST_S = 0.25
"""Each rest is twice as long as the one before. A request's last bytes may wait for so long."""


class LittleReads:
    """Those of one connection."""

    __slots__ = ("_count", "_flow", "_loop", "_rest", "_rest_s", "_transport")

    def __init__(
        self, transport: Transport, flow: ReadFlow, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._transport = transport
        self._flow = flow
        self._loop = loop
        self._count = 0
        self._rest_s = FIRST_REST_S
        self._rest: asyncio.TimerHandle | None = None

    def request_ends(self) -> None:
        """It is complete."""
        self._count = 0
        self._rest_s = FIRST_REST_S

    def read(self, size: int) -> None:
        """So many bytes have come, and completed no request."""
        if size >= LITTLE_BYTES:
            self._count = max(0, self._count - size // LITTLE_BYTES)
            self._rest_s = max(FIRST_REST_S, self._rest_s / 2)
            return
        self._count += 1
        if self._count > FREE and self._rest is None and not self._transport.is_closing():
            self._flow.rests = True
            self._transport.pause_reading()
            self._rest = self._loop.call_later(self._rest_s, self._go_on)
            self._rest_s = min(2 * self._rest_s, LONGEST_REST_S)

    def end(self) -> None:
        """The connection has ended."""
        if self._rest is not None:
            self._rest.cancel()
            self._rest = None

    def _go_on(self) -> None:
        self._rest = None
        self._flow.rests = False
        self._flow.go_on()
