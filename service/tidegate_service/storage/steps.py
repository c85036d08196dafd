"""Blocking work as steps of some milliseconds, each in its turn.

Reading a log may take minutes, and whose log that is decides how long. So such work is a generator:
from one `yield` to the next is a step, done in a thread by the turns of whoever it is for
(`core.sharing.pools`). Whoever leaves has no further step begun.
"""

import asyncio
import threading
from collections.abc import AsyncGenerator, Generator
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Generic, TypeVar

from tidegate_service.core.sharing.pools import Share

Y = TypeVar("Y")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class _Ended(Generic[R]):
    value: R


class _Steps(Generic[Y, R]):
    """A generator that one thread at a time is in. What it holds is released by `leave`, or by
    the thread that is in it then."""

    def __init__(self, steps: Generator[Y, None, R]) -> None:
        self._steps = steps
        self._within = threading.Lock()
        self._is_left = False

    def step(self) -> Y | _Ended[R]:
        try:
            with self._within:
                try:
                    return next(self._steps)
                except StopIteration as end:
                    return _Ended(end.value)
        finally:
            if self._is_left:
                self.leave()

    def leave(self) -> None:
        self._is_left = True
        # Where a thread is in it, that one looks once more when it has left the lock.
        if self._within.acquire(blocking=False):
            try:
                self._steps.close()
            finally:
                self._within.release()


async def result(
    work: Generator[object, None, R], share: Share, *, begin: Executor | None = None
) -> R:
    """What the work returns. Its first step is done in `begin`, if there is one: threads of those
    whose work mostly has but one."""
    steps = _Steps(work)
    try:
        found = await _first(steps, share, begin)
        while not isinstance(found, _Ended):
            found = await share.run_rested(steps.step)
        value: R = found.value
        return value
    finally:
        steps.leave()


async def yielded(
    work: Generator[Y | None, None, Y | None], share: Share, *, begin: Executor | None = None
) -> AsyncGenerator[Y]:
    """What the work yields and returns, but for None, by which it ends a step that has nothing to
    show."""
    steps = _Steps(work)
    try:
        found = await _first(steps, share, begin)
        while not isinstance(found, _Ended):
            if found is not None:
                yield found
            found = await share.run_rested(steps.step)
        if found.value is not None:
            yield found.value
    finally:
        steps.leave()


async def _first(steps: _Steps[Y, R], share: Share, begin: Executor | None) -> Y | _Ended[R]:
    if begin is None:
        return await share.run_rested(steps.step)
    return await asyncio.get_running_loop().run_in_executor(begin, steps.step)
