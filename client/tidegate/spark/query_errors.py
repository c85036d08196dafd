"""What PySpark logs of errors that this package raises or answers itself.

PySpark writes each exception of a query to standard error as JSON of some kilobytes, with the JVM's
stack, as it makes the exception. Here such an exception ends as an error of this package, which
says the same, or answers a question, such as whether a predicate needs a column: a call that
succeeds would print an error, and one that is refused would print it twice.
"""

import logging
import sys

from pyspark.logger import PySparkLogger

_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
"""As `pyspark.errors.exceptions.base` names them."""
_PACKAGE = "tidegate.spark."


def quiet_inside() -> None:
    """Have PySpark not log what is raised inside a call of this package. What the caller's own
    queries raise is logged as ever."""
    for name in _LOGGERS:
        # A filter that is there already is not added again.
        PySparkLogger.getLogger(name).addFilter(_is_callers)


def _is_callers(_: logging.LogRecord) -> bool:
    # PySpark logs in the thread and below the call in which the exception is made.
    frame = sys._getframe()
    while (caller := frame.f_back) is not None:
        frame = caller
        name = str(frame.f_globals.get("__name__"))
        if name.startswith(_PACKAGE) and name != __name__:
            return False
    return True
