"""The threads that long predicates are read in, by how long these are.

Reading the longest takes seconds, rests included. Whoever waits for one that takes milliseconds
waits for none that is longer, and for one of each other principal at most.
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

from tidegate_protocol.proposal.transaction import VERY_LONG_PREDICATES
from tidegate_service.core.sharing.pools import Pool, Rests, Share

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

LONGEST_PREDICATES = 4 * 1024
"""From so many characters on, reading them takes a tenth of a second and more."""


class Reading(Protocol[T_co]):
    """What reads a predicate; `pause` is that of `predicates.parse_predicate`."""

    def __call__(self, *, pause: Callable[[], None]) -> T_co: ...


class PredicateThreads:
    """One for each kind, of one instance."""

    def __init__(self) -> None:
        self._kinds = (
            (VERY_LONG_PREDICATES, Pool("predicates", 1)),
            (LONGEST_PREDICATES, Pool("long-predicates", 1)),
        )
        self._longest = Pool("longest-predicates", 1)

    def of(self, principal: str, length: int) -> Share:
        """The principal's part of the thread for predicates of this length
        (`transaction.predicates_length`)."""
        pools = (pool for most, pool in self._kinds if length < most)
        return next(pools, self._longest).of(principal)

    async def read(self, principal: str, length: int, reading: Reading[T]) -> T:
        """What `reading` makes of a predicate of this length, and what it raises. It leaves the
        interpreter to others again and again."""
        return await self.of(principal, length).run(_resting, reading)


def _resting(reading: Reading[T]) -> T:
    return reading(pause=Rests())
