"""The memory that large bodies under way share.

What a body becomes in memory is claimed while it grows. Who finds no room left is told to come
back: nobody waits, holding a part of it.
"""

from dataclasses import dataclass

from tidegate_protocol.base.problems import Code
from tidegate_service.core.errors import Refused, Unavailable
from tidegate_service.core.sharing.shares import Shares, most_of_one

FREE_BYTES = 64 * 1024
"""Bodies below this claim no room; the number of requests bounds them."""


def room_for_bodies(max_bytes: int) -> Shares:
    """How much all large bodies under way may hold together."""
    return Shares(max_bytes, "bytes that the large bodies under way hold")


@dataclass(frozen=True, slots=True)
class Room:
    """What all share, and in whose name a claim on it is made."""

    shares: Shares
    who: str | None = None

    @property
    def largest(self) -> int:
        """The most that one body may hold, were there no other."""
        return self.shares.most if self.who is None else most_of_one(self.shares.most)


class Claim:
    """What one request holds of the room."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._held = 0

    def grow(self, size: int) -> None:
        """Hold this much, if it is more than before. Raises `Unavailable` (`backpressure`), and
        `Refused` (`too-large`) for what there would be no room for if there were nothing else."""
        more = size - self._held
        if size <= FREE_BYTES or more <= 0:
            return
        if size > self._room.largest:
            raise Refused(
                f"the body takes more memory than {self._room.largest} bytes",
                code=Code.TOO_LARGE,
                hint="split the work into several transactions",
            )
        try:
            self._room.shares.take(self._room.who, more)
        except Unavailable:
            # At once, or the other one, which it has to give way to, would find no room either.
            self.give_back()
            raise
        self._held = size

    def give_back(self) -> None:
        """The request has ended."""
        if self._held:
            self._room.shares.give_back(self._room.who, self._held)
            self._held = 0
