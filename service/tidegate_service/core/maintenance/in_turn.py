"""Work on a whole table that a caller asks for: to forget it, make its index anew, release it."""

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
    """What `make` returns, or raises. It waits for the principal's turn, since each such work may
    read a whole log, and goes on where the caller leaves; whoever leaves before its turn has begun
    nothing."""
    who = context.who
    if who is None:
        return await context.running.run(key, make())
    await turns.take(who)

    def over(task: asyncio.Task[T]) -> None:
        turns.end(who)
        if not task.cancelled():
            # Its caller may have left: nobody else looks at it then.
            task.exception()

    task = asyncio.create_task(context.running.run(key, make()), name=" ".join(key))
    task.add_done_callback(over)
    try:
        return await asyncio.shield(task)
    finally:
        # An error knows this frame: with the task in it, which knows the error, all that the work
        # held would wait for the garbage collector.
        del task
