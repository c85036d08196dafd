"""The memory that large bodies under way share.

What a body becomes in memory is reserved while it grows. A request that finds no memory left is
told to come back: nobody waits, holding a part of it.
"""

from dataclasses import dataclass

from tidegate_protocol.base.problems import Code
from tidegate_service.core.errors import Refused, Unavailable
from tidegate_service.core.sharing.shares import Shares, most_of_one

FREE_BYTES = 64 * 1024
"""Bodies below this reserve no memory; the number of requests bounds them."""


def memory_for_bodies(max_bytes: int) -> Shares:
    """How much all large bodies under way may hold together."""
    return Shares(max_bytes, "bytes that the large bodies under way hold")


@dataclass(frozen=True, slots=True)
class BodyMemory:
    """What all share, and in whose name a part of it is reserved."""

    shares: Shares
    who: str | None = None

    @property
    def largest(self) -> int:
        """The most that one body may hold, were there no other."""
        return self.shares.most if self.who is None else most_of_one(self.shares.most)


class Reservation:
    """What one request holds of the memory."""

    def __init__(self, memory: BodyMemory) -> None:
        self._memory = memory
        self._held = 0

    def grow(self, size: int) -> None:
        """Hold this much, if it is more than before. Raises `Unavailable` (`backpressure`), and
        `Refused` (`too-large`) for what there would be no memory for if there were nothing else."""
        more = size - self._held
        if size <= FREE_BYTES or more <= 0:
            return
        if size > self._memory.largest:
            raise Refused(
                f"the body takes more memory than {self._memory.largest} bytes",
                code=Code.TOO_LARGE,
                hint="split the work into several transactions",
            )
        try:
            self._memory.shares.take(self._memory.who, more)
        except Unavailable:
            # At once, or the other one, which it has to give way to, would find no memory either.
            self.give_back()
            raise
        self._held = size

    def give_back(self) -> None:
        """The request has ended."""
        if self._held:
            self._memory.shares.give_back(self._memory.who, self._held)
            self._held = 0
