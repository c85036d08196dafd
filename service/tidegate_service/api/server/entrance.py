"""How connections come in: what waits at the socket is taken at once, and begins in turns.

libuv takes one connection in each pass of the event loop. Whoever opens them faster, and closes
them again, so fills the system's queue, and everybody else's attempts are dropped: they are made
again after one second, three, seven. Here a pass takes many, and lets those go whose callers have
left, which costs less than it cost them to come. What one costs from its beginning on is bounded
for a pass, and addresses have their turns at it.
"""

import asyncio
import logging
import os
import select
import socket
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import cast

from tidegate_protocol.base.problems import Code
from tidegate_service.api.server.connections import Connections
from tidegate_service.api.server.refusal import refusal

logger = logging.getLogger("tidegate.service")

BACKLOG = 2048
"""Connections that wait in the system; it may have a bound of its own."""
LEAST_TAKEN = 4
"""In the first pass of several, so that processes that share a socket share what comes at once."""
MOST_TAKEN = 256
BEGUN = 1
"""Connections that begin in one pass: what comes on them is parsed, and answered, a millisecond's
worth. With two, others' commits wait a half longer for a flood of connections."""
BEGUN_OF_PROXY = 8
"""The same where it is a proxy's turn: all that come through it wait in one line. A thousand of a
flood that connects for each request hold others of them up for seconds with one."""
LOOKED_AT = 64
"""Connections of which it is seen in one pass whether their callers have left."""
ANSWERED = 8
"""Connections too many that are told so in one pass. Others just end."""
RETRY_S = 1.0
"""So long none is taken once the system refuses one, as where no more files can be opened."""
_LEFT = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)

Begin = Callable[[str], asyncio.BaseProtocol]
"""Makes the protocol of a connection from this address, which is counted, and uncounted by it."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    taken: socket.socket
    address: str


class Entrance:
    """That of one event loop, by one socket. To uvicorn it is what `create_server` gives."""

    def __init__(self, listener: socket.socket, *, begin: Begin, connections: Connections) -> None:
        self._listener = listener
        self._begin = begin
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        # By the sources of their addresses; the first has the next turn.
        self._waiting: dict[str, deque[_Waiting]] = {}
        self._beginning: set[asyncio.Task[None]] = set()
        self._most = LEAST_TAKEN
        self._answered = 0
        self._retry: asyncio.TimerHandle | None = None
        self._next_pass: asyncio.Handle | None = None

    def open(self) -> None:
        """Listen, until `close`."""
        self._listener.setblocking(False)
        self._listener.listen(BACKLOG)
        self._loop.add_reader(self._listener.fileno(), self._take)

    def close(self) -> None:
        """Take no more. Those that have not begun end."""
        if self._retry is not None:
            self._retry.cancel()
        if self._next_pass is not None:
            self._next_pass.cancel()
        self._loop.remove_reader(self._listener.fileno())
        for line in self._waiting.values():
            for each in line:
                self._end(each)
        self._waiting.clear()

    async def wait_closed(self) -> None:
        """Wait until what has begun to begin has begun."""
        if self._beginning:
            await asyncio.wait(self._beginning)

    def _take(self) -> None:
        """Called while connections wait at the socket."""
        came: list[_Waiting] = []
        self._answered = 0
        for _ in range(self._most):
            try:
                taken, address = self._listener.accept()
            except (BlockingIOError, ConnectionError, InterruptedError):
                self._most = LEAST_TAKEN
                break
            except OSError:
                self._loop.remove_reader(self._listener.fileno())
                self._retry = self._loop.call_later(RETRY_S, self.open)
                break
            came.append(_Waiting(taken, address[0]))
        else:
            self._most = min(2 * self._most, MOST_TAKEN)
        left = _left(came)
        for each in came:
            if each.taken.fileno() in left:
                each.taken.close()
            else:
                self._enter(each)
        if self._waiting and self._next_pass is None:
            self._pass()

    def _enter(self, waiting: _Waiting) -> None:
        too_many = self._connections.enter(waiting.address)
        if too_many is None:
            source = self._connections.share_of(waiting.address) or waiting.address
            self._waiting.setdefault(source, deque()).append(waiting)
            return
        with waiting.taken:
            if self._answered == ANSWERED:
                return
            self._answered += 1
            try:
                waiting.taken.send(refusal(Code.BACKPRESSURE, too_many), socket.MSG_DONTWAIT)
            except OSError:
                # Its caller has left already.
                return

    def _pass(self) -> None:
        """Have some begin, and some more in the next pass of the loop."""
        begun = looked_at = 0
        while self._waiting and not begun and looked_at < LOOKED_AT:
            for waiting in self._next():
                looked_at += 1
                if _left([waiting]):
                    self._end(waiting)
                    continue
                begun += 1
                task = self._loop.create_task(self._connect(waiting))
                self._beginning.add(task)
                task.add_done_callback(self._beginning.discard)
        self._next_pass = self._loop.call_soon(self._pass) if self._waiting else None

    def _next(self) -> list[_Waiting]:
        """Those whose turn it is."""
        source = next(iter(self._waiting))
        line = self._waiting.pop(source)
        turn = BEGUN_OF_PROXY if self._connections.proxies.has(source) else BEGUN
        taken = [line.popleft() for _ in range(min(turn, len(line)))]
        if line:
            # The source's next ones come after those of all others.
            self._waiting[source] = line
        return taken

    async def _connect(self, waiting: _Waiting) -> None:
        waiting.taken.setblocking(False)
        protocol = self._begin(waiting.address)
        handed = _Handed(waiting.taken)
        try:
            await self._loop.connect_accepted_socket(lambda: protocol, cast(socket.socket, handed))
        except Exception as error:
            if getattr(protocol, "transport", None) is not None:
                raise  # It is the loop's by now, and ends as all others.
            logger.warning("a connection could not begin", extra={"error": str(error)})
            os.close(handed.fileno())
            self._connections.leave(waiting.address)

    def _end(self, waiting: _Waiting) -> None:
        waiting.taken.close()
        self._connections.leave(waiting.address)


class _Handed:
    """A socket whose file is the event loop's from here on. The loop would close a socket of
    Python's a second time where its connection ends at once, whoever has the file's number by
    then."""

    type = socket.SOCK_STREAM

    def __init__(self, taken: socket.socket) -> None:
        self.family = taken.family
        self._file = taken.detach()

    def fileno(self) -> int:
        return self._file

    def close(self) -> None:
        """The loop does it."""


def _left(waiting: Iterable[_Waiting]) -> set[int]:
    """The files of those that their callers have closed: what they have sent would have no
    answer."""
    poll = select.poll()
    for each in waiting:
        poll.register(each.taken, getattr(select, "POLLRDHUP", 0))
    return {file for file, events in poll.poll(0) if events & _LEFT}
