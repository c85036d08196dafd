"""What is made of the parts of something that is replaced, step by step, by another like it."""

from collections.abc import Callable
from typing import Any, TypeVar

_Part = TypeVar("_Part")
_Made = TypeVar("_Made")


class Made:
    """What functions made of parts: all steps share it, so that each is made once for as long as
    the part is the same object.

    A function makes the same of the same part each time, and is one that modules define: what one
    made is kept for as long as this is. Nobody may change a result.
    """

    __slots__ = ("_newest",)

    def __init__(self) -> None:
        self._newest: dict[Callable[..., Any], tuple[Any, Any]] = {}

    def of(self, part: _Part, make: Callable[[_Part], _Made]) -> _Made:
        """What `make` makes of the part. Raises what it does, each time."""
        found = self._newest.get(make)
        if found is None or found[0] is not part:
            found = self._newest[make] = part, make(part)
        made: _Made = found[1]
        return made
