"""What users see of an error in PySpark's workers: its text, without the frames of this client.

PySpark puts the traceback of an exception into the message that the driver raises.
"""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import ParamSpec, TypeVar

from tidegate.errors import TidegateError

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def without_frames(method: Callable[P, R]) -> Callable[P, R]:
    """A method that PySpark calls, whose errors of this client have no traceback but the call."""

    @wraps(method)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except TidegateError as error:
            raise error.with_traceback(None) from error.__cause__

    return called


def each_without_frames(method: Callable[P, Iterator[T]]) -> Callable[P, Iterator[T]]:
    """The same of a method that yields."""

    @wraps(method)
    def called(*args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        try:
            yield from method(*args, **kwargs)
        except TidegateError as error:
            raise error.with_traceback(None) from error.__cause__

    return called
