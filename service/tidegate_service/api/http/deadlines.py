"""Deadlines: thousands of them begin each second, and hardly one is reached."""

import asyncio
from collections.abc import Callable, Hashable

_FINEST_S = 0.001
"""The loop's clock counts milliseconds, and one of its timers may be that much too early."""


class Deadlines:
    """Calls whoever has not ended within `seconds`, in one event loop at a time.

    A timer of the loop for each of them would cost more than all else that is done for one.
    They are all equally long, so they fall due in the order in which they began, and one timer,
    for the oldest, is enough.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due: dict[Hashable, tuple[float, Callable[[], None]]] = {}

    def begin(self, who: Hashable, overdue: Callable[[], None]) -> None:
        """Call `overdue` in so many seconds unless `end` is called before; a second call for
        the same one begins its time anew."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            # The timers of an earlier loop have ended with it.
            self._loop, self._timer, self._due = loop, None, {}
        self._due.pop(who, None)
        self._due[who] = (loop.time() + self._seconds, overdue)
        if self._timer is None:
            self._timer = loop.call_later(self._seconds, self._end_overdue)

    def end(self, who: Hashable) -> None:
        """It is done, or given up; nothing to do for one that has not begun."""
        self._due.pop(who, None)

    def _end_overdue(self) -> None:
        assert self._loop is not None
        self._timer = None
        now = self._loop.time()
        overdue = []
        for who, (when, _) in self._due.items():
            if when > now:
                self._timer = self._loop.call_later(max(when - now, _FINEST_S), self._end_overdue)
                break
            overdue.append(who)
        for who in overdue:
            due = self._due.pop(who, None)
            if due is None:
                continue  # Ended by the call for another one.
            try:
                due[1]()
            except Exception as error:
                # The others have theirs all the same.
                self._loop.call_exception_handler({"message": "a deadline", "exception": error})


class Deadline:
    """The one of the task that makes it, which is cancelled when it is reached.

    As `asyncio.timeout`, over the shared timers of `Deadlines`.
    """

    def __init__(self) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a deadline is a task's, and there is none here")
        self._task = task
        self._cancelled_before = task.cancelling()
        self._within: Deadlines | None = None
        self._reached = False

    def within(self, deadlines: Deadlines) -> None:
        """Begin its time, in the place of any that is running."""
        if self._within is not None and self._within is not deadlines:
            self._within.end(self)
        self._within = deadlines
        deadlines.begin(self, self._overdue)

    def end(self) -> None:
        """From here on nothing is bounded by it."""
        if self._within is not None:
            self._within.end(self)
            self._within = None

    def was_reached(self) -> bool:
        """Asked once, of a task that ended early: whether it is this deadline that cancelled it,
        and nobody else does as well."""
        return self._reached and self._task.uncancel() <= self._cancelled_before

    def _overdue(self) -> None:
        self._within = None
        self._reached = True
        self._task.cancel()
