"""How many connections there are, and for how long an answer may wait in one to be read."""

import resource
import socket
import struct
from asyncio import Transport

from tidegate_service.api.http.deadlines import Deadlines
from tidegate_service.api.http.request.limits import USUAL
from tidegate_service.core.access.addresses import source_of
from tidegate_service.core.access.proxies import Proxies
from tidegate_service.core.errors import Unavailable
from tidegate_service.core.sharing.shares import Shares

OTHER_FILES = 256
"""Files that the process has open beside its callers' connections: to the database, to stores, of
logs."""


class Connections:
    """Those of one server. An address has a share of them (`core.sharing.shares`); of IPv6, a
    network. One of the `proxies` speaks for many, and has none. What is written to a connection is
    taken within `send_s`, or it ends.
    """

    def __init__(
        self, most: int, *, send_s: float = USUAL.send_s, proxies: Proxies | None = None
    ) -> None:
        self._shares = Shares(most, "connections")
        self.sending = Deadlines(send_s)
        self.proxies = proxies or Proxies()

    def enter(self, address: str) -> str | None:
        """Count one of the address. Returns why it has to end, and is not counted, where there are
        too many."""
        try:
            self._shares.take(self.share_of(address))
        except Unavailable as refused:
            return refused.detail
        return None

    def leave(self, address: str) -> None:
        """It has ended."""
        self._shares.give_back(self.share_of(address))

    def share_of(self, address: str) -> str | None:
        """In whose name shares are taken for a connection of the address; None for a proxy's."""
        return None if self.proxies.has(address) else source_of(address)


def most_connections(connections: int) -> int:
    """How many connections there may be, so many at most: each is an open file. As many files as
    that needs are asked for."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = connections + OTHER_FILES
    if hard != resource.RLIM_INFINITY:
        needed = min(needed, hard)
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
        soft = needed
    if soft == resource.RLIM_INFINITY:
        return connections
    return max(1, min(connections, soft - OTHER_FILES))


def end_at_once(transport: Transport) -> None:
    """Have the system drop what it has still to send once the transport ends."""
    opened = transport.get_extra_info("socket")
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
