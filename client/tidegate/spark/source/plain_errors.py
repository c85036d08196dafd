"""What users see of an error in PySpark's workers: its text, without the frames of this client.

PySpark puts the traceback of an exception into the message that the driver raises.
"""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import ParamSpec, TypeVar

from tidegate.errors import TidegateError

C = TypeVar("C", bound=type)
P = ParamSpec("P")
T = TypeVar("T")
_CALLED = (
    *("schema", "reader", "writer", "streamReader", "streamWriter"),
    *("partitions", "write", "commit", "abort"),
    *("initialOffset", "latestOffset", "prepareForTriggerAvailableNow"),
)
_YIELDS = "read"


def without_frames(source: C) -> C:
    """A class of PySpark's data source API whose errors of this client have no traceback but that
    of the call."""
    methods = vars(source)
    for name in [name for name in _CALLED if name in methods]:
        setattr(source, name, _called(methods[name]))
    if _YIELDS in methods:
        setattr(source, _YIELDS, _yielding(methods[_YIELDS]))
    return source


def _called(method: Callable[P, T]) -> Callable[P, T]:
    @wraps(method)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(*args, **kwargs)
        except TidegateError as error:
            raise _plain(error) from error.__cause__

    return called


def _yielding(method: Callable[P, Iterator[T]]) -> Callable[P, Iterator[T]]:
    @wraps(method)
    def called(*args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        try:
            yield from method(*args, **kwargs)
        except TidegateError as error:
            raise _plain(error) from error.__cause__

    return called


def _plain(error: TidegateError) -> TidegateError:
    found: BaseException | None = error
    while found is not None:
        found.__traceback__ = None
        found = found.__cause__
    return error
