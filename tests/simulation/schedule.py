"""Virtual time: one queue of what happens next, in the whole world.

Every wait of every actor ends by an event of this queue, and how long it takes is a choice. So the
scheduler chooses at every await who goes on, and hours of timeouts pass in no time.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count

Event = Callable[[], None]

MOST_EVENTS = 20_000
"""A world of so many is one that never comes to rest."""


class NeverAtRest(Exception):
    """The world's events have no end."""


class Scheduler:
    """`now` is in seconds from the world's beginning, `steps` how many events there were."""

    __slots__ = ("_numbers", "_queue", "hooks", "now", "steps")

    def __init__(self) -> None:
        self.now = 0.0
        self.steps = 0
        self.hooks: dict[int, Event] = {}
        """What happens before the event of this number."""
        self._queue: list[tuple[float, int, Event]] = []
        self._numbers = count()

    def after(self, delay_s: float, event: Event) -> None:
        heappush(self._queue, (self.now + delay_s, next(self._numbers), event))

    def at(self, when: float, event: Event) -> None:
        heappush(self._queue, (max(when, self.now), next(self._numbers), event))

    def run(self, *, until: Callable[[], bool], limit_s: float) -> bool:
        """Let things happen until that is so; False where nothing does any more, or the time is
        over."""
        queue, hooks = self._queue, self.hooks
        limit_s += self.now
        while not until():
            if not queue or queue[0][0] > limit_s:
                return False
            self.steps = steps = self.steps + 1
            if steps > MOST_EVENTS:
                raise NeverAtRest(f"{steps} events, and no end of them")
            if hooks and steps in hooks:
                hooks.pop(steps)()
                continue
            when, _, event = heappop(queue)
            self.now = max(self.now, when)
            event()
        return True
