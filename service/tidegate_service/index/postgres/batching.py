"""Questions that come at about the same time, answered together.

Nobody waits for others to come: a question that finds nothing under way is answered at once, and
who asks meanwhile is answered with all who did.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Generic, TypeVar

Asked = TypeVar("Asked")
Told = TypeVar("Told")


class Batching(Generic[Asked, Told]):
    """`answer` is given what was asked, and returns as many answers in the same order; what it
    raises is raised to all of them. It is called again when it has returned, and no sooner than
    `apart_s` after it was called before, but for somebody who asks `at_once`."""

    def __init__(
        self, answer: Callable[[Sequence[Asked]], Awaitable[Sequence[Told]]], *, apart_s: float
    ) -> None:
        self._answer = answer
        self._apart_s = apart_s
        self._waiting: list[tuple[Asked, asyncio.Future[Told]]] = []
        self._callers = 0
        self._working: asyncio.Task[None] | None = None
        self._not_before = 0.0
        self._hurry = asyncio.Event()

    async def ask(self, asked: Asked, *, at_once: bool = False) -> Told:
        told: asyncio.Future[Told] = asyncio.get_running_loop().create_future()
        self._waiting.append((asked, told))
        self._callers += 1
        if at_once:
            self._hurry.set()
        if self._working is None:
            self._work()
        try:
            return await told
        except asyncio.CancelledError:
            working = self._working
            if self._callers == 1 and working is not None:
                # Nobody else wants to know; whoever ends this caller may go on to end the
                # connections, too.
                working.cancel()
                await asyncio.wait([working])
            raise
        finally:
            self._callers -= 1

    def _work(self) -> None:
        # In a task of its own: whoever asked first may be cancelled, and the others not.
        self._working = asyncio.create_task(self._answer_all(), name="batching")

    async def _answer_all(self) -> None:
        now = asyncio.get_running_loop().time
        try:
            while self._waiting:
                if (early := self._not_before - now()) > 0:
                    with suppress(TimeoutError):
                        # `asyncio.wait_for` of Python 3.11 may lose that this is cancelled.
                        async with asyncio.timeout(early):
                            await self._hurry.wait()
                self._hurry.clear()
                waiting, self._waiting = self._wanted(), []
                self._not_before = now() + self._apart_s
                if waiting:
                    await self._answer_these(waiting)
        finally:
            self._working = None
            if self._wanted():
                # Asked while this was being cancelled.
                self._work()

    def _wanted(self) -> list[tuple[Asked, asyncio.Future[Told]]]:
        return [one for one in self._waiting if not one[1].done()]

    async def _answer_these(self, waiting: Sequence[tuple[Asked, asyncio.Future[Told]]]) -> None:
        try:
            answers = await self._answer([asked for asked, _ in waiting])
            answered = list(zip(waiting, answers, strict=True))
        except Exception as error:
            for _, told in waiting:
                if not told.done():
                    told.set_exception(error)
            return
        for (_, told), answer in answered:
            if not told.done():
                told.set_result(answer)
