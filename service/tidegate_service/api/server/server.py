"""uvicorn, with what it lacks: bounds on connections (`protocol`), and a stop that lets work end.

Uses uvloop and httptools.
"""

import asyncio
import contextlib
import socket
import time
from collections.abc import Callable, Iterator
from typing import cast

import uvicorn
from starlette.types import ASGIApp

from tidegate_service.api.http.deadlines import Deadlines
from tidegate_service.api.http.request.limits import USUAL, ServerLimits
from tidegate_service.api.http.request.requests import Gate
from tidegate_service.api.server.config import ServerConfig
from tidegate_service.api.server.connections import Connections
from tidegate_service.api.server.entrance import Entrance
from tidegate_service.api.server.protocol import BoundedProtocol
from tidegate_service.api.server.sliced_reads import Slices

DISCONNECT_S = 1
"""How long answers may still be sent after `ServerLimits.drain_s`."""


class Server(uvicorn.Server):
    """Serves until `stop`; then takes nothing new, and ends once nothing is under way."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        gate: Gate,
        connections: Connections,
        on_started: Callable[[socket.socket], None],
        limits: ServerLimits = USUAL,
    ) -> None:
        config = ServerConfig(
            app,
            http=BoundedProtocol,
            loop="uvloop",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=DISCONNECT_S,
        )
        config.connections = self._connections = connections
        config.heads, config.rests = Deadlines(limits.head_s), Deadlines(limits.head_s)
        config.silences = Deadlines(limits.keep_alive_s)
        config.slices = Slices.usual()
        super().__init__(config)
        self._gate = gate
        self._drain_s = limits.drain_s
        self._on_started = on_started
        self._stop_by: float | None = None

    def stop(self) -> None:
        """Begin to stop; a second call ends the wait for what is under way."""
        if self._gate.closed:
            self.should_exit = True
        self._gate.close()
        self._stop_by = time.monotonic() + self._drain_s

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's, but for how connections come in. The one socket is bound."""
        assert sockets is not None
        (listener,) = sockets
        entrance = Entrance(listener, begin=self._protocol, connections=self._connections)
        entrance.open()
        self.servers = cast(list[asyncio.Server], [entrance])
        self.started = True
        self._on_started(listener)

    def _protocol(self, address: str) -> BoundedProtocol:
        protocol = BoundedProtocol(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        protocol.address = address
        return protocol

    async def on_tick(self, counter: int) -> bool:
        if self._stop_by is not None:
            idle = self._gate.under_way == 0
            self.should_exit = self.should_exit or idle or time.monotonic() > self._stop_by
        return await super().on_tick(counter)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the command line's business: it calls `stop`."""
        yield


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket with its address taken, not listening yet. Raises `OSError`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    bound.set_inheritable(False)
    return bound


def url_of(listening: socket.socket) -> str:
    """`http://host:port` of a bound socket."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
