"""A connection that cannot begin is let go of, and counted no more."""

import asyncio
import socket

import pytest
import uvloop

from tidegate_service.api.server.connections import Connections
from tidegate_service.api.server.entrance import Entrance

PATIENCE_S = 20.0


class Refusing(asyncio.Protocol):
    """Has no transport, as where the loop does not take the connection's file."""

    transport = None


async def _ends_what_cannot_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    connections = Connections(1)
    fails = [True]

    class Loop:
        """The running one, which cannot take a file."""

        def __getattr__(self, name: str) -> object:
            return getattr(loop, name)

        async def connect_accepted_socket(self, factory, sock):
            if fails.pop():
                raise FileExistsError("the file is another one's")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        entrance = Entrance(listener, begin=lambda _: Refusing(), connections=connections)
        monkeypatch.setattr(entrance, "_loop", Loop())
        entrance.open()
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        async with asyncio.timeout(PATIENCE_S):
            assert await reader.read() == b""
        writer.close()
        # The only place is free again.
        assert connections.enter("127.0.0.1") is None
        entrance.close()


def test_what_cannot_begin_ends(monkeypatch):
    uvloop.run(_ends_what_cannot_begin(monkeypatch))
