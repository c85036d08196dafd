"""An instance's way to the database and to the store, which takes its time.

A request has its effect there when it arrives, whatever has become of who sent it; its answer comes
later, if whoever asked is still there. How long both take is a choice.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Protocol, TypeVar

from tests.simulation.loop import InstanceLoop
from tests.simulation.schedule import Scheduler
from tests.simulation.worlds.choices import Choices

T = TypeVar("T")

Answering = Callable[[Any, BaseException | None], None]
"""Told what a request came to: a result, or what went wrong."""

LATENCIES_S = (0.001, 0.003, 0.02, 0.3, 3.0, 13.0)
"""How long a way may take; a world says how likely each is."""
CALM = (0.6, 0.25, 0.13, 0.02, 0.0, 0.0)
UNSTEADY = (0.5, 0.2, 0.15, 0.1, 0.04, 0.01)
SLOW = (0.3, 0.2, 0.2, 0.15, 0.1, 0.05)
TEMPERS = (CALM, UNSTEADY, SLOW)


class Network(Protocol):
    """What the ports in memory need of whatever they run in."""

    choices: Choices

    def note(self, *what: object) -> None:
        """For a story of what happened, in parts."""
        ...

    def now(self) -> float: ...

    def after(self, delay_s: float, event: Callable[[], None]) -> None:
        """Something happens on the other side, whatever becomes of this one."""
        ...

    async def request(self, arrived: Callable[[Answering], None], *, what: str) -> Any:
        """Have `arrived` called on the other side, which answers whenever it likes."""
        ...

    async def call(self, effect: Callable[[], T], *, what: str) -> T:
        """A request that is answered at once."""
        ...


class InstanceNetwork:
    """Of one instance in one life. `temper` are the likelihoods of `LATENCIES_S`; each read of the
    store takes `read_s` more."""

    def __init__(
        self,
        scheduler: Scheduler,
        loop: InstanceLoop,
        choices: Choices,
        *,
        name: str,
        temper: tuple[float, ...] = CALM,
        read_s: float = 0.0,
        note: Callable[..., None] = lambda *what: None,
    ) -> None:
        self.choices = choices
        self.name = name
        self.temper = temper
        self.gate: Callable[[str], Awaitable[None]] | None = None
        """What is waited for in a moment of rest, where somebody says how long it is."""
        self._read_s = read_s
        self.note = note
        self._actors: dict[str, str] = {}
        self._scheduler = scheduler
        self._loop = loop

    def now(self) -> float:
        return self._scheduler.now

    def after(self, delay_s: float, event: Callable[[], None]) -> None:
        self._scheduler.after(delay_s, event)

    def way_s(self, what: str) -> float:
        actor = self._actors.get(what)
        if actor is None:
            actor = self._actors[what] = f"{self.name}.{what}"
        took_s = LATENCIES_S[self.choices.pick(actor, self.temper)]
        return took_s + self._read_s if what == "get" else took_s

    async def request(self, arrived: Callable[[Answering], None], *, what: str) -> Any:
        future: asyncio.Future[Any] = asyncio.Future(loop=self._loop)
        loop, after = self._loop, self._scheduler.after

        def answer(result: Any, error: BaseException | None) -> None:
            self.note(self.name, " ", what, ": ", result if error is None else error)
            after(self.way_s(what), lambda: loop.deliver(settle, future, result, error))

        after(self.way_s(what), lambda: arrived(answer))
        return await future

    async def call(self, effect: Callable[[], T], *, what: str) -> T:
        future: asyncio.Future[T] = asyncio.Future(loop=self._loop)
        loop = self._loop

        def arrived() -> None:
            try:
                result = effect()
            except Exception as error:
                loop.deliver(settle, future, None, error)
            else:
                loop.deliver(settle, future, result, None)

        self._scheduler.after(self.way_s(what), arrived)
        return await future

    async def rest(self, what: str) -> None:
        """A moment in which the instance may be stopped, before it sends something."""
        if self.gate is None:
            await self.call(lambda: None, what=what)
        else:
            await self.gate(what)


def settle(future: "asyncio.Future[Any]", result: Any, error: BaseException | None) -> None:
    """Whoever waits is told, if somebody does."""
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


class NoNetwork:
    """Of the contract tests: everything is near, in whatever loop runs."""

    def __init__(self) -> None:
        self.choices = Choices(0, {})

    def note(self, *what: object) -> None:
        pass

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def after(self, delay_s: float, event: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_later(delay_s, event)

    async def request(self, arrived: Callable[[Answering], None], *, what: str) -> Any:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        await asyncio.sleep(0)
        arrived(partial(settle, future))
        return await future

    async def call(self, effect: Callable[[], T], *, what: str) -> T:
        await asyncio.sleep(0)
        return effect()

    async def rest(self, what: str) -> None:
        await asyncio.sleep(0)
