"""Instances and publishers that wait before each step until they are told to do it."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any

from tests.simulation.ports.network import Answering
from tests.simulation.worlds.instance import Instance
from tidegate_service.core.context import Context
from tidegate_service.core.observe.faults import Side
from tidegate_service.core.observe.faults import Step as Point

UseCase = Callable[[Context], Coroutine[Any, Any, Any]]

PUT, COMMIT, LOCK = "put", "commit", "lock and decide"
_COMMITS = (Point.O8_INDEX, Point.M6_COMMIT)
_LOCKS = (Point.O1_LOCK, Point.M1_LOCK)
_OF_A_BATCH = {
    Point.M8_PUBLISH: "publisher puts",
    Point.M9_MARK_PUBLISHED: "publisher marks",
    Point.M10_FORGET_CONTENT: "publisher forgets bytes",
}


class Actor:
    """An instance that is asked for one thing at a time; `at` is the step that it waits to be told
    of."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.at: str | None = None
        self._held: Sequence[str] = ()
        self._go: asyncio.Future[None] | None = None
        self._is_recording = False
        self._attach()

    def _attach(self) -> None:
        """To the life that the instance has now."""
        life = self.instance.life
        life.network.gate = self.rest
        life.context = replace(life.context, faults=self)

    def ask(self, use_case: UseCase, told: Answering, *, held: Sequence[str]) -> None:
        """Begin, and wait before each of the steps that are `held`."""
        self._held, self._is_recording = held, False
        self.instance.ask(use_case, told)

    def go_on(self) -> None:
        """Do the step that it is at, and all up to the next."""
        go, self.at, self._go = self._go, None, None
        if go is not None:
            self.instance.life.loop.deliver(lambda: go.done() or go.set_result(None))

    def free(self) -> None:
        """Wait for nothing any more."""
        self._held = ()
        self.go_on()

    def restart(self) -> None:
        self.instance.kill(noticed_s=0.0)
        self.instance.restart()
        self.at = self._go = None
        self._attach()

    async def rest(self, what: str) -> None:
        """Of the network: before a PUT or a COMMIT is sent. Making the index anew is part of the
        step that finds that it has to be."""
        if what == COMMIT and self._is_recording:
            self._is_recording = False
        elif not _makes_index_anew():
            await self._wait(what)

    async def reached(self, point: Point, side: Side) -> None:
        """Of `FaultPoints`. An instance waits before it records what landed, and not only before
        COMMIT: until then it cannot know that it has lost its session."""
        if side is Side.BEFORE and point in _LOCKS:
            await self._wait(LOCK)
        elif side is Side.BEFORE and point in _COMMITS:
            await self._wait(COMMIT)
            self._is_recording = True

    async def _wait(self, what: str) -> None:
        if what not in self._held:
            return
        assert self.at is None, f"about to {what} and to {self.at}"
        self.at = what
        self._go = asyncio.get_running_loop().create_future()
        await self._go


def _makes_index_anew() -> bool:
    task = asyncio.current_task()
    return task is not None and task.get_name().startswith("commit-reload")


class PublishingActor(Actor):
    """One that publishes, whose steps are those of a batch."""

    HELD = tuple(_OF_A_BATCH.values())

    async def rest(self, what: str) -> None:
        """A PUT is one of them, and a COMMIT a part of one."""

    async def reached(self, point: Point, side: Side) -> None:
        if side is Side.BEFORE and point in _OF_A_BATCH:
            await self._wait(_OF_A_BATCH[point])
