"""How many files of others are read at a time, so that no principal has all of the processes."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.core.sharing.turns import SharedTurns

WAIT_S = 5.0
"""What waits may have a transaction open, which Postgres ends after ten seconds of silence."""


class Places:
    """`most` files are read at a time, of one principal all but a quarter; nobody is as one. Of
    one event loop."""

    def __init__(self, most: int, *, wait_s: float = WAIT_S) -> None:
        self._most = most
        self._wait_s = wait_s
        self._turns = SharedTurns(most)

    @asynccontextmanager
    async def one(self, who: str | None) -> AsyncIterator["Place"]:
        """Raises `StorageUnavailable` where there is none for `wait_s`."""
        try:
            async with asyncio.timeout(self._wait_s):
                await self._turns.take(who)
        except TimeoutError:
            raise StorageUnavailable(
                f"as many checkpoints are being read as may be: {self._most}, of one principal "
                "all but a quarter; it can be tried again"
            ) from None
        place = Place(self._turns, who)
        try:
            yield place
        finally:
            place.leave()


class Place:
    """It is held until the caller has left, and the thread that reads the file then, which ends
    the file's process."""

    def __init__(self, turns: SharedTurns, who: str | None) -> None:
        self._loop = asyncio.get_running_loop()
        self._turns = turns
        self._who = who
        self._lock = threading.Lock()
        self._holders = 1

    @contextmanager
    def held(self) -> Iterator[None]:
        """In a thread, before the caller has left."""
        with self._lock:
            self._holders += 1
        try:
            yield
        finally:
            self.leave()

    def leave(self) -> None:
        """Safe in any thread."""
        with self._lock:
            self._holders -= 1
            if self._holders:
                return
        # A loop that has ended has nobody who waits.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._turns.end, self._who)
