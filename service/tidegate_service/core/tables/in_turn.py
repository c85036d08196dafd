"""Work that a caller asks for and that goes on without its caller: on a whole table (to register or
forget it, make its index anew, release it), a conflict check, an abort, or a creation."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from tidegate_service.core.context import Context
from tidegate_service.core.instance.running_commits import SectionKey
from tidegate_service.core.sharing.turns import OwnTurns

T = TypeVar("T")


async def in_turn(
    context: Context, turns: OwnTurns, key: SectionKey, make: Callable[[], Coroutine[Any, Any, T]]
) -> T:
    """What `make` returns, or raises. The work waits for the principal's turn, since each may read
    a log. Once begun, it goes on where the caller leaves. A caller who leaves before has
    begun nothing."""
    who = context.who
    if who is None:
        return await context.running.run(key, make())
    await turns.take(who)

    def over(task: asyncio.Task[T]) -> None:
        turns.end(who)
        if not task.cancelled():
            # Where its caller has left, nobody else asks for its error.
            task.exception()

    task = asyncio.create_task(context.running.run(key, make()), name=" ".join(key))
    task.add_done_callback(over)
    try:
        return await asyncio.shield(task)
    finally:
        # An error refers to this frame, and the task to the error. With the task in the frame, all
        # that the work had in memory would wait for the garbage collector.
        del task
