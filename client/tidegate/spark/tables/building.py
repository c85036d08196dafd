"""Columns in few calls of the JVM.

For each column that is made PySpark tells the JVM the line of the caller, in eight calls, and looks
the class of its functions up, in two: of a table with a thousand columns a command made two hundred
thousand calls of them. What commands make are lines of this client, which help nobody.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from pyspark import SparkContext
from pyspark.errors import utils

_CLASSES = ("PythonUtils", "functions")
_SETTING = "_enable_debugging_cache"
"""Where PySpark has what it read of it."""
_lock = Lock()
_under_way = 0
_noted: bool | None = None


@contextmanager
def few_calls() -> Iterator[None]:
    """Columns that are made in the block, or in other threads meanwhile, do not note the line that
    made them, as with `spark.python.sql.dataFrameDebugging.enabled` false, which PySpark reads once
    a process. So no job runs in one. As a decorator it is for a function's calls."""
    if _SETTING not in vars(utils):
        # A PySpark that has it elsewhere: nothing is lost but time.
        yield
        return
    _look_up()
    _begin()
    try:
        yield
    finally:
        _end()


def _begin() -> None:
    global _under_way, _noted  # noqa: PLW0603 - what it puts back is one of PySpark's
    with _lock:
        if not _under_way:
            _noted = vars(utils)[_SETTING]
            vars(utils)[_SETTING] = False
        _under_way += 1


def _end() -> None:
    global _under_way  # noqa: PLW0603 - as above
    with _lock:
        _under_way -= 1
        if not _under_way:
            vars(utils)[_SETTING] = _noted


def _look_up() -> None:
    context = SparkContext._active_spark_context
    if context is None or context._jvm is None:
        # One of Spark Connect.
        return
    known = vars(context._jvm)
    for name in _CLASSES:
        if name not in known:
            known[name] = getattr(context._jvm, name)
