"""Work on the actions of large commits, which would hold the event loop for seconds.

It runs in threads of its own: few, because they share one interpreter, and not those that files
are written in, because others' commits wait for these.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, TypeVarTuple, Unpack

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

HEAVY = 5_000
"""From so many actions on, a pass over them takes milliseconds."""

_threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="heavy")


async def run(size: int, work: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
    """The result of `work(*args)`, which goes through `size` actions; off the event loop where
    they are many."""
    if size < HEAVY:
        return work(*args)
    return await asyncio.get_running_loop().run_in_executor(_threads, work, *args)
