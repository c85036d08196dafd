"""What copies of logs (`core.log.copying`) may take of an instance: turns, and its disk."""

from contextlib import AbstractAsyncContextManager

from tidegate_service.core.errors import StorageUnavailable, Unavailable
from tidegate_service.core.sharing.shares import Shares
from tidegate_service.core.sharing.turns import SharedTurns

AT_ONCE = 4
MOST_BYTES = 8 * 1024**3
"""On the disk, of all copies together."""


class CopyLimits:
    """`at_once` copies are made at a time, and take `most_bytes` together; one principal leaves
    some of both to others. Of one event loop."""

    def __init__(self, *, at_once: int = AT_ONCE, most_bytes: int = MOST_BYTES) -> None:
        self._turns = SharedTurns(at_once)
        self._shares = Shares(most_bytes, "bytes that copies of logs take on the disk")

    @property
    def taken(self) -> int:
        """Bytes on the disk."""
        return self._shares.taken

    def turn(self, who: str | None) -> AbstractAsyncContextManager[None]:
        """Wait for a turn at copying, and end it afterwards."""
        return self._turns.turn(who)

    def take(self, who: str | None, size: int) -> None:
        """Raises `StorageUnavailable` where too little is left, in all or of the caller's share."""
        try:
            self._shares.take(who, size)
        except Unavailable as refused:
            raise StorageUnavailable(refused.detail) from None

    def give_back(self, who: str | None, size: int) -> None:
        self._shares.give_back(who, size)
