"""How far a table's log lags behind its head, looked at from outside while a load runs."""

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.rig.service import Service, Table

_APART_S = 0.1


class Lag:
    """The most that any look saw. `seconds` is how long the oldest version that was not published
    had been the head, or behind it; a look says it to within the time between two."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.versions = 0
        self.looks = 0
        self._heads: deque[tuple[int, float]] = deque()

    def saw(self, latest: int, published: int, *, at_s: float) -> None:
        """One look, at `at_s` of a clock that never goes back."""
        self.looks += 1
        if not self._heads or latest > self._heads[-1][0]:
            self._heads.append((latest, at_s))
        while self._heads and self._heads[0][0] <= published:
            self._heads.popleft()
        self.versions = max(self.versions, latest - published)
        if self._heads:
            self.seconds = max(self.seconds, at_s - self._heads[0][1])


@contextmanager
def watched(service: Service, table: Table) -> Iterator[Lag]:
    """Look at the table until the end of the block. Raises what a look met."""
    lag, ended, failed = Lag(), threading.Event(), list[Exception]()

    def look() -> None:
        try:
            while not ended.wait(_APART_S):
                # Versions that came while the answer did are not in it.
                at_s = time.monotonic()
                lag.saw(*service.head(table), at_s=at_s)
        except Exception as error:
            failed.append(error)

    looking = threading.Thread(target=look, name="lag")
    looking.start()
    try:
        yield lag
    finally:
        ended.set()
        looking.join()
    if failed:
        raise failed[0]
