"""An event loop of one instance, which runs when the scheduler says so.

What is ready runs in its order, as in asyncio; what is waited for comes from the scheduler. A loop
can be stopped, like a process by SIGSTOP: whatever comes to it then waits until it is continued.
One that is dead never runs again.
"""

import asyncio
import contextvars
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from contextlib import suppress
from typing import Any

from tests.simulation.schedule import Scheduler


class _Handle(list[Any]):
    """What `call_soon` and `call_at` return: the callback, None once it was cancelled, its
    arguments, its context, and when. A list, because there is one for each step of a task, and
    lists are the fastest to make."""

    __slots__ = ()

    def cancel(self) -> None:
        self[0] = None

    def cancelled(self) -> bool:
        return self[0] is None

    def when(self) -> float:
        return self[3]  # type: ignore[no-any-return]


class InstanceLoop(asyncio.AbstractEventLoop):
    """Only what tasks, futures, locks and timeouts need: no threads, no sockets."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._ready: deque[_Handle] = deque()
        self._backlog: list[tuple[Callable[..., object], tuple[Any, ...]]] = []
        self._tasks: list[asyncio.Task[Any]] = []
        self.is_stopped = False
        self.is_dead = False
        self.defects: list[dict[str, Any]] = []

    def time(self) -> float:
        return self._scheduler.now

    get_debug = bool
    """False; asked for by each future, and so no function of Python's."""

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def call_soon(  # type: ignore[override]
        self,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> _Handle:
        handle = _Handle((callback, args, context, 0.0))
        self._ready.append(handle)
        return handle

    def call_later(  # type: ignore[override]
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> _Handle:
        return self.call_at(self._scheduler.now + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> _Handle:
        handle = _Handle((callback, args, context or contextvars.copy_context(), when))

        def due() -> None:
            if not handle.cancelled():
                self.deliver(self._ready.append, handle)

        self._scheduler.at(when, due)
        return handle

    def create_future(self) -> "asyncio.Future[Any]":
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]
        self,
        coro: Coroutine[Any, Any, Any],
        *,
        name: str | None = None,
        context: contextvars.Context | None = None,
    ) -> "asyncio.Task[Any]":
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        # Of a loop that dies nobody else may hold them.
        self._tasks.append(task)
        return task

    async def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., Any], *args: Any
    ) -> Any:
        return func(*args)

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: object = None
    ) -> None:
        # Only what `run_in_executor` does in the place of a thread calls it.
        callback(*args)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not self.is_dead and "exception" in context:
            self.defects.append(context)

    def deliver(self, event: Callable[..., object], *args: Any) -> None:
        """Something comes to the process: it runs on from there, unless it is stopped or dead."""
        if self.is_dead:
            return
        if self.is_stopped:
            self._backlog.append((event, args))
            return
        event(*args)
        self.run_ready()

    def run_ready(self) -> None:
        """Run what is ready, and what becomes ready by that."""
        ready = self._ready
        if not ready or events._get_running_loop() is self:
            return
        before = events._get_running_loop()
        events._set_running_loop(self)
        try:
            while ready:
                callback, args, context, _ = ready.popleft()
                if callback is None:
                    continue
                if context is None:
                    callback(*args)
                else:
                    context.run(callback, *args)
        finally:
            events._set_running_loop(before)

    def stop_process(self) -> None:
        self.is_stopped = True

    def continue_process(self) -> None:
        """Everything that came meanwhile has come by now."""
        self.is_stopped = False
        backlog, self._backlog = self._backlog, []
        for event, args in backlog:
            self.deliver(event, *args)

    def kill(self) -> None:
        """Nothing of it runs again. Its tasks are kept, so that nothing of them runs by being
        forgotten, either."""
        self.is_dead = True
        self._ready.clear()
        self._backlog.clear()

    def forget(self) -> None:
        """At the end of the world: end what has not ended, here and now and not some time."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            if not task.done():
                with suppress(RuntimeError):
                    # "coroutine ignored GeneratorExit", or no loop for what it wants to do yet.
                    task.get_coro().close()
        self._ready.clear()
        self._backlog.clear()
