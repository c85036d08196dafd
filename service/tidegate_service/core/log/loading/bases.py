"""Other bases of a log than its oldest one.

A log is read from the oldest checkpoint that all later commits follow. Where that checkpoint is
damaged, or does not show whose it is, a later one may do: other readers begin at the newest.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from tidegate_protocol.base.problems import Code
from tidegate_service.core.errors import Refused

MOST_BASES = 3
"""A log is read from so many checkpoints, one after the other: each costs as much as the first."""

T = TypeVar("T")


class BaseRefused(Refused):
    """The log cannot be taken in from the checkpoint of this version, and has a later one."""

    code = Code.BROKEN_LOG

    def __init__(self, detail: str, *, version: int, hint: str | None = None) -> None:
        super().__init__(detail, hint=hint)
        self.base = version


async def from_first_base(attempt: Callable[[int], Awaitable[T]]) -> T:
    """What `attempt` returns of the first base that it does not refuse. `attempt` is told the least
    version that its base may be of, and must leave nothing behind where it raises."""
    least = 0
    for _ in range(MOST_BASES - 1):
        try:
            return await attempt(least)
        except BaseRefused as refused:
            least = refused.base + 1
    return await attempt(least)
