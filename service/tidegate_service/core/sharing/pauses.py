"""Pauses: what keeps the next proposals to a table waiting for a moment."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class Pauses:
    """Those of one instance, of one event loop."""

    def __init__(self) -> None:
        self._ends: dict[str, asyncio.Event] = {}

    @contextmanager
    def pausing(self, table_id: str, *, for_s: float) -> Iterator[None]:
        """Whoever comes waits until the context is left, `for_s` at most. One table has one pause
        at a time."""
        end = asyncio.Event()
        self._ends[table_id] = end
        timer = asyncio.get_running_loop().call_later(for_s, self._end, table_id, end)
        try:
            yield
        finally:
            timer.cancel()
            self._end(table_id, end)

    async def ended(self, table_id: str) -> None:
        """Returns once the pause that there is now has ended. A later one is not waited for, so
        nobody waits for longer than one lasts."""
        end = self._ends.get(table_id)
        if end is not None:
            await end.wait()

    def _end(self, table_id: str, end: asyncio.Event) -> None:
        end.set()
        if self._ends.get(table_id) is end:
            del self._ends[table_id]
