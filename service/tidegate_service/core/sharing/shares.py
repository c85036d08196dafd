"""What many callers take parts of, so that none of them can take all of it.

One may hold three times what is left, and no more. So one alone gets three quarters, several who
take all they can get as much each and leave something, and whoever comes next finds a part.
"""

from collections import Counter

from tidegate_protocol.base.problems import Code
from tidegate_service.core.errors import Unavailable

TIMES = 3


class Shares:
    """`most` of something, in any unit, of one event loop. Nobody (None) has no share, and is held
    back by the whole alone: where nobody is told from anybody, a reserve would be kept for none."""

    def __init__(self, most: int, what: str) -> None:
        """`what` names it in answers: "requests under way", "bytes of ..."."""
        self.most = most
        self.taken = 0
        self._what = what
        self._of: Counter[str] = Counter()

    def of(self, who: str | None) -> int:
        """How much one holds; 0 for nobody."""
        return 0 if who is None else self._of[who]

    def take(self, who: str | None, size: int = 1) -> None:
        """Raises `Unavailable` (`backpressure`) where there is not so much, or not for this one."""
        taken = self.taken + size
        check(self._what, most=self.most, taken=taken, mine=self.of(who) + size, who=who)
        self.taken = taken
        if who is not None:
            self._of[who] += size

    def give_back(self, who: str | None, size: int = 1) -> None:
        """What was taken."""
        self.taken -= size
        if who is None:
            return
        self._of[who] -= size
        if not self._of[who]:
            del self._of[who]


def check(what: str, *, most: int, taken: int, mine: int, who: str | None) -> None:
    """Raise `Unavailable` (`backpressure`) where no more than `most` may be taken and `taken` would
    be, or this one's part of it, `mine`, would be larger than its share."""
    if taken > most:
        found = f"there are {most}, as many as may be"
    elif who is not None and mine > max(1, TIMES * (most - taken)):
        found = f"this caller would have {mine} of {most}, more than {TIMES} times what is left"
    else:
        return
    raise Unavailable(f"{what}: {found}; nothing was done", code=Code.BACKPRESSURE)


def most_of_one(count: int) -> int:
    """How many of so many places one may hold, alone: all but a quarter, and but one at least where
    there are two."""
    return count - max(count // 4, min(1, count - 1))
