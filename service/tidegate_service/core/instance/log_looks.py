"""Looks at the logs of plain tables before reads (`core.maintenance.freshness`), shared by requests
that come at the time.
"""

import asyncio
import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from tidegate_service.core.errors import Unavailable
from tidegate_service.core.instance.log_checks import TABLES

LIST_S = 10.0
"""As commits check a log every ten seconds (`core.instance.log_checks`)."""

LogKey = tuple[str | None, str]
"""(in whose name, table id). Principals share no looks: reading a log takes turns of theirs."""


@dataclass(slots=True)
class _Looks:
    """Looks at one log. `waiting` requests have not been answered yet. `since_s` is when the last
    look began that succeeded, `listed_s` when the last did that listed the log, `failed_s` when one
    ended that failed by `error`."""

    one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: int = 0
    since_s: float = -math.inf
    listed_s: float = -math.inf
    failed_s: float = -math.inf
    error: Unavailable | None = None


class LogLooks:
    """Those of one instance, of one event loop. Times are of `monotonic_s`.

    A request is answered by a look that began after the request came, or less than `max_age_s`
    seconds before. So requests that come while a look is under way share the next one. Every
    `LIST_S` a look is to list the log, too."""

    def __init__(self, *, max_age_s: float = 0.0) -> None:
        self._max_age_s = max_age_s
        self._of: OrderedDict[LogKey, _Looks] = OrderedDict()

    async def shared(
        self,
        key: LogKey,
        look: Callable[[bool], Awaitable[None]],
        monotonic_s: Callable[[], float],
        *,
        at_any_age: bool = True,
    ) -> None:
        """Wait for `look`, which learns whether it is to list the log, or for another request's;
        unless `at_any_age`, for one that began after the call.

        Raises what it raises; an `Unavailable` is raised for all who came before the look ended.
        Where its caller leaves, the next one looks."""
        came = monotonic_s()
        looks = self._of.setdefault(key, _Looks())
        most_s = self._max_age_s if at_any_age else 0.0
        if came - looks.since_s < most_s:
            return
        self._of.move_to_end(key)
        while len(self._of) > TABLES:
            # A request that waits keeps its entry.
            self._of.popitem(last=False)
        looks.waiting += 1
        try:
            async with looks.one_at_a_time:
                if looks.error is not None and came < looks.failed_s:
                    raise looks.error
                # A look that began after the call has a negative age.
                if came - looks.since_s < most_s:
                    return
                began = monotonic_s()
                lists = began - looks.listed_s >= LIST_S
                try:
                    await look(lists)
                except Unavailable as error:
                    looks.failed_s, looks.error = monotonic_s(), error
                    raise
                looks.since_s, looks.error = began, None
                if lists:
                    looks.listed_s = began
        finally:
            looks.waiting -= 1
            if not looks.waiting:
                # An error refers to the frames that it passed, and all that they had in memory.
                looks.error = None
