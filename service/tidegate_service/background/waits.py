"""How long a table's versions have waited for publishing, as far as their publisher has seen."""

from collections import deque

APART_S = 0.25
RECENT = 64
"""Heads that are remembered, and how long one is seen after the other at least: 16 s together."""


class Waits:
    """The heads of one table, and when they were seen. What was committed between two of them is as
    young as the second one. Versions' own timestamps say nothing of it: where commits come faster
    than one a millisecond, they run ahead of the clock."""

    def __init__(self) -> None:
        self._seen: deque[tuple[int, float]] = deque(maxlen=RECENT)

    def see(self, head: int, *, at_s: float) -> None:
        """`head` was the table's latest version at `at_s`, by a clock that never goes back."""
        if not self._seen or (head > self._seen[-1][0] and at_s >= self._seen[-1][1] + APART_S):
            self._seen.append((head, at_s))

    def waited_s(self, first: int, *, at_s: float) -> float:
        """How long `first`, the oldest version that waits, has waited at least; what came before it
        is asked of no more."""
        while self._seen and self._seen[0][0] < first:
            self._seen.popleft()
        return max(0.0, at_s - self._seen[0][1]) if self._seen else 0.0
