"""How long a log may be read into the index.

A log is read in one transaction. While that is open, Postgres keeps every row of any table that is
overwritten meanwhile, and the section keeps its connection. So the reading has to end, however
slowly the log comes, and however long it goes on.
"""

from collections.abc import Callable

from tidegate_service.core.errors import IndexUnavailable
from tidegate_service.core.limits import CommitLimits


class ReadingTime:
    """The time of one section, from now on: `CommitLimits.log_s`, and more for all that was
    read."""

    def __init__(self, limits: CommitLimits, monotonic_s: Callable[[], float]) -> None:
        self.limits = limits
        self._monotonic_s = monotonic_s
        self._began_s = monotonic_s()
        self._read = 0

    def version(self, actions: int = 0) -> None:
        """Count a version with so many actions as read. Raises as `actions` does."""
        self.actions(self.limits.actions_a_version + actions)

    def actions(self, number: int = 0) -> None:
        """Count so many actions as read. Raises `IndexUnavailable` where the time is over:
        the log may be read in time when the store or the machine is less busy."""
        self._read += number
        most_s = self.limits.log_s + self.limits.log_s_a_million * self._read / 1_000_000
        took_s = self._monotonic_s() - self._began_s
        if took_s > most_s:
            raise IndexUnavailable(
                f"reading the log into the index was given up after {took_s:,.0f} s: expected at "
                f"most {self.limits.log_s:,.0f} s, and {self.limits.log_s_a_million:,.0f} s for "
                f"each million of actions, of which {self._read:,} were read; nothing is kept of it"
            )
