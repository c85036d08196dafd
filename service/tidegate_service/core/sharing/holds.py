"""Holds: what keeps the next proposals to a table waiting for a moment."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class Holds:
    """Of one instance, and its event loop."""

    def __init__(self) -> None:
        self._ends: dict[str, asyncio.Event] = {}

    @contextmanager
    def holding(self, table_id: str, *, for_s: float) -> Iterator[None]:
        """Whoever comes waits until the context is left, `for_s` at most. One table has one hold at
        a time."""
        end = asyncio.Event()
        self._ends[table_id] = end
        timer = asyncio.get_running_loop().call_later(for_s, self._end, table_id, end)
        try:
            yield
        finally:
            timer.cancel()
            self._end(table_id, end)

    async def passed(self, table_id: str) -> None:
        """Returns once the hold that there is now has ended; whatever comes after it is not waited
        for, so nobody is held up for longer than one lasts."""
        end = self._ends.get(table_id)
        if end is not None:
            await end.wait()

    def _end(self, table_id: str, end: asyncio.Event) -> None:
        end.set()
        if self._ends.get(table_id) is end:
            del self._ends[table_id]
