"""The passes of an operation over a table's files, which long ones are watched by."""

import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Self
from uuid import uuid4

from pyspark import SparkContext
from pyspark.sql import SparkSession

from tidegate.progress import progress
from tidegate.spark.jobs.tasks import RunningTasks

_LOG = logging.getLogger(__name__)
_DESCRIPTION = "spark.job.description"
_GROUP = "spark.jobGroup.id"

Shown = Callable[[Callable[[], str | None]], AbstractContextManager[None]]
"""Shows what a function says while a block lasts."""


class Passes:
    """What an operation is at, which Spark's UI says of its jobs, the log at level INFO, and a
    terminal in one line where it takes long; and how long its parts take.

    In a `with` block its jobs are a job group, by which they can be found and cancelled. A group
    that the thread has already stays, so that whoever set it can cancel them. Jobs that come after
    the block have the group and the description that those before it had.
    """

    def __init__(
        self, spark: SparkSession, *, operation: str, table: str, shown: Shown = progress
    ) -> None:
        """`shown` is what shows a line on the terminal."""
        # Spark Connect shows its clients no context.
        self._context: SparkContext | None = getattr(spark, "sparkContext", None)
        self._what = f"{operation} of {table}"
        self._group = f"tidegate-{uuid4()}"
        self._at = self._what
        self._described: str | None = None
        self._has_group = False
        self._shown = shown
        self._line: AbstractContextManager[None] = nullcontext()
        self._started = time.monotonic()
        self._scanned: float | None = None

    def __enter__(self) -> Self:
        group = self._group
        if self._context is not None:
            self._described = self._context.getLocalProperty(_DESCRIPTION)
            known = self._context.getLocalProperty(_GROUP)
            if known is None:
                self._context.setLocalProperty(_GROUP, group)
                self._has_group = True
            else:
                group = known
        tasks = None if self._context is None else RunningTasks(self._context, group)
        self._line = self._shown(lambda: self._at if tasks is None else tasks.beside(self._at))
        self._line.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._line.__exit__(kind, error, trace)
        if self._context is None:
            return
        # Python's type for it lacks None, which takes a property away.
        self._context.setLocalProperty(_DESCRIPTION, self._described)  # type: ignore[arg-type]
        if self._has_group:
            self._context.setLocalProperty(_GROUP, None)  # type: ignore[arg-type]

    def reads_source(self) -> None:
        """From here on, jobs read the rows of a source."""
        self._begin("reading the source")

    def scans(self, files: int) -> None:
        """From here on, jobs look for rows in so many files."""
        self._begin(f"looking for rows in {files} files")

    def writes(self, touched: int, *, of: int) -> None:
        """From here on, rows of so many of these files are written."""
        self._scanned = time.monotonic()
        self._begin(f"writing rows of {touched} of {of} files")

    def writes_rows(self, which: str = "rows") -> None:
        """From here on, rows of a DataFrame are written."""
        self._scanned = time.monotonic()
        self._begin(f"writing {which}")

    def rewrites(self, files: int, *, parts: int) -> None:
        """From here on, so many files are written again, each part by a job of its own."""
        self._begin(f"writing {files} files again in {parts} parts")

    def copies(self, files: int) -> None:
        """From here on, so many files are copied."""
        self._begin(f"copying {files} files")

    def opens(self, files: int) -> None:
        """From here on, the ends of so many files are read."""
        self._begin(f"reading the ends of {files} files")

    def looks_for(self, files: int) -> None:
        """From here on, so many files are looked for."""
        self._begin(f"looking for {files} files")

    def commits(self, actions: int) -> None:
        """From here on, a proposal of so many actions is under way."""
        self._begin(f"committing {actions} actions")

    def metrics(self) -> dict[str, str]:
        """The times by Delta's names, in ms."""
        now = time.monotonic()
        scanned = now if self._scanned is None else self._scanned
        return {
            "executionTimeMs": _ms(now - self._started),
            "scanTimeMs": _ms(scanned - self._started),
            "rewriteTimeMs": _ms(now - scanned),
        }

    def _begin(self, what: str) -> None:
        self._at = f"{self._what}: {what}"
        _LOG.info(self._at)
        if self._context is not None:
            self._context.setJobDescription(self._at)


def _ms(seconds: float) -> str:
    return str(round(seconds * 1000))
