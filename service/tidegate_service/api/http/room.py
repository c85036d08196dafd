"""The memory that large bodies under way share.

What a body becomes in memory is claimed while it grows. Who finds no room left is told to come
back: nobody waits, holding a part of it.
"""

from tidegate_protocol.problems import Code
from tidegate_service.core.errors import Refused, Unavailable

FREE_BYTES = 1024 * 1024
"""Bodies below this claim no room; the number of requests bounds them."""


class Room:
    """How much all large bodies under way may hold together, in bytes."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.taken = 0


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
        if size > self._room.max_bytes:
            raise Refused(
                f"the body takes more memory than {self._room.max_bytes} bytes",
                code=Code.TOO_LARGE,
                hint="split the work into several transactions",
            )
        if self._room.taken + more > self._room.max_bytes:
            # At once, or the other one, which it has to give way to, would find no room either.
            self.give_back()
            raise Unavailable(
                f"the large bodies under way hold as much as they may together "
                f"({self._room.max_bytes} bytes); nothing was done",
                code=Code.BACKPRESSURE,
            )
        self._room.taken += more
        self._held = size

    def give_back(self) -> None:
        """The request has ended."""
        self._room.taken -= self._held
        self._held = 0
