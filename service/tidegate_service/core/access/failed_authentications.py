"""How many tokens that nobody has may be tried from one address.

Each try costs a query of the index, which others wait for. The bits of a token make guessing
hopeless; this keeps it from costing anybody else.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from tidegate_protocol.base.problems import Code
from tidegate_service.core.access.addresses import source_of
from tidegate_service.core.errors import Unavailable

BURST = 20
PER_S = 1.0
"""Failures of one address that are free at once, and so many more a second."""
ADDRESSES = 10_000
"""So many are remembered; those that failed longest ago make room."""
DELAY_S = 1.0
DELAYED = 64
"""An address beyond its failures waits for its refusal, so that asking again at once costs little;
so many requests at a time do."""


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

    def count(self, address: str) -> None:
        """One more failure of the address."""
        source = source_of(address)
        now = self._monotonic_s()
        self._of[source] = _Failures(self._count(source, now) + 1, now)
        self._of.move_to_end(source)
        if len(self._of) > self._addresses:
            self._of.popitem(last=False)

    async def check(self, address: str) -> None:
        """Raise `Unavailable` (`backpressure`), after a while, where the address has failed too
        often to be looked up for."""
        if self._count(source_of(address), self._monotonic_s()) < BURST:
            return
        if self._delayed < DELAYED:
            self._delayed += 1
            try:
                await asyncio.sleep(self._delay_s)
            finally:
                self._delayed -= 1
        raise Unavailable(
            f"more than {BURST} requests from this address had no valid token within a short time, "
            "so another unknown token of it is not looked up now; nothing was done",
            code=Code.BACKPRESSURE,
        )

    def _count(self, source: str, now: float) -> float:
        known = self._of.get(source)
        return 0.0 if known is None else max(0.0, known.count - PER_S * (now - known.at))
