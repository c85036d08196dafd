"""Remembering what a pure function said of the definitions of tables, which commits share."""

from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Result = TypeVar("_Result")

SMALL = 16_384
"""Up to this weight (bytes or characters), a key is an ordinary one."""
MANY = 512
FEW = 4


def remember(
    function: Callable[[_Key], _Result], *, weigh: Callable[[_Key], int]
) -> Callable[[_Key], _Result]:
    """The same function, which remembers its newest results: those of the last `MANY` small keys,
    and of the last `FEW` others, since a schema may have megabytes.

    The function must be pure, and nobody may change its results: they belong to all who asked.
    What it raises is not remembered.
    """
    small = lru_cache(maxsize=MANY)(function)
    large = lru_cache(maxsize=FEW)(function)

    def remembered(key: _Key) -> _Result:
        return small(key) if weigh(key) <= SMALL else large(key)

    return remembered
