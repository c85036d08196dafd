"""How long the event loop is held at a time, while something is done."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

EACH_S = 0.005


@dataclass
class Gaps:
    """`longest_s`: for how long nobody else's turn came. In time of the loop's own thread, so that
    what else runs on the machine does not count."""

    longest_s: float = 0.0


@asynccontextmanager
async def gaps() -> AsyncIterator[Gaps]:
    """Measured from the beginning of the block to its end."""
    found = Gaps()

    async def watch() -> None:
        since = time.thread_time()
        while True:
            await asyncio.sleep(EACH_S)
            now = time.thread_time()
            found.longest_s = max(found.longest_s, now - since)
            since = now

    watching = asyncio.create_task(watch())
    await asyncio.sleep(EACH_S)
    try:
        yield found
    finally:
        await asyncio.sleep(EACH_S)
        watching.cancel()
