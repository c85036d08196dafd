"""Remembering what a pure function said of the definitions of tables, which commits share."""

from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Result = TypeVar("_Result")

SMALL = 16_384
"""Up to this weight (bytes or characters), a key is an ordinary one."""
MEDIUM = 65_536
"""Up to this weight, a key is that of a table with some hundreds of columns."""
MANY = 512
SOME = 32
FEW = 4


class Remembered(Generic[_Key, _Result]):
    """A pure function that remembers its newest results: those of the last `MANY` small keys, of
    the last `SOME` medium ones, and of the last `FEW` others, since a schema may have megabytes.

    Nobody may change a result: it belongs to all who asked. What the function raises is not
    remembered. Threads may share it.
    """

    def __init__(
        self, function: Callable[[_Key], _Result], *, weigh: Callable[[_Key], int]
    ) -> None:
        self._weigh = weigh
        self._small = lru_cache(maxsize=MANY)(function)
        self._medium = _Newest(function, SOME)
        self._large = _Newest(function, FEW)

    def __call__(self, key: _Key) -> _Result:
        weight = self._weigh(key)
        return self._small(key) if weight <= SMALL else self._of(weight)(key)

    def is_cheap(self, key: _Key) -> bool:
        """Whether the function takes little time for the key: a small one, or one whose result is
        remembered."""
        weight = self._weigh(key)
        return weight <= SMALL or key in self._of(weight)

    def _of(self, weight: int) -> "_Newest[_Key, _Result]":
        return self._medium if weight <= MEDIUM else self._large


class _Newest(Generic[_Key, _Result]):
    """What `lru_cache` is, and it can be asked what it holds."""

    def __init__(self, function: Callable[[_Key], _Result], most: int) -> None:
        self._function = function
        self._held: Callable[[_Key], list[_Result]] = lru_cache(maxsize=most)(_nothing_yet)

    def __contains__(self, key: _Key) -> bool:
        return bool(self._held(key))

    def __call__(self, key: _Key) -> _Result:
        held = self._held(key)
        if not held:
            # Another thread may do the same: the first result is the one that is handed out.
            held.append(self._function(key))
        return held[0]


def _nothing_yet(_: object) -> list[_Result]:
    return []


def remember(
    function: Callable[[_Key], _Result], *, weigh: Callable[[_Key], int]
) -> Remembered[_Key, _Result]:
    """The same function, which remembers its newest results. It must be pure."""
    return Remembered(function, weigh=weigh)
