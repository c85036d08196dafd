"""How fast tokens that nobody has may be tried from one address.

The bits of a token make guessing hopeless, and `lookups` keeps a flood from costing others much.
Here whoever waits for an answer before it tries again is made to wait longer. Nobody is refused for
an address: behind a proxy that the service was not told of, all have the same one.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from tidegate_service.core.access.addresses import source_of

BURST = 20
PER_S = 1.0
"""Failures of one address that are told at once, and so many more a second."""
ADDRESSES = 10_000
"""So many are remembered; those that failed longest ago make room."""
DELAY_S = 1.0
DELAYED = 64
"""So many requests at a time are held up."""


@dataclass(slots=True)
class _Failures:
    """`count` at the time `at`, in s; it goes down by `PER_S`."""

    count: float
    at: float


class FailedAuthentications:
    """Those of one instance, of one event loop."""

    def __init__(
        self,
        *,
        monotonic_s: Callable[[], float],
        delay_s: float = DELAY_S,
        addresses: int = ADDRESSES,
    ) -> None:
        self._addresses = addresses
        self._monotonic_s = monotonic_s
        self._delay_s = delay_s
        self._of: OrderedDict[str, _Failures] = OrderedDict()
        self._delayed = 0

    async def failed(self, address: str) -> None:
        """One more failure of the address. Takes a while where there were too many."""
        source = source_of(address)
        now = self._monotonic_s()
        count = self._count(source, now) + 1
        # Forgiven soon after the last one, however many there were.
        self._of[source] = _Failures(min(count, BURST + 1), now)
        self._of.move_to_end(source)
        if len(self._of) > self._addresses:
            self._of.popitem(last=False)
        if count > BURST and self._delayed < DELAYED:
            self._delayed += 1
            try:
                await asyncio.sleep(self._delay_s)
            finally:
                self._delayed -= 1

    def _count(self, source: str, now: float) -> float:
        known = self._of.get(source)
        return 0.0 if known is None else max(0.0, known.count - PER_S * (now - known.at))
