"""The condition of a DELETE or UPDATE, and the files in which it may be true."""

import json
from dataclasses import dataclass
from typing import Self

from pyroaring import BitMap64
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidegate.models import DataFile
from tidegate.spark.commands.marking import positions_of
from tidegate.spark.commands.target import Target
from tidegate.spark.expressions.errors import unsupported_subquery
from tidegate.spark.expressions.pruning import (
    names_partitions_only,
    predicate_text,
    wholly_matching,
)
from tidegate.spark.expressions.resolution import (
    Resolved,
    Scope,
    has_only_exists,
    has_subquery,
    row_condition,
)
from tidegate.spark.tables.places import FILE
from tidegate.spark.tables.predicates import partitions_where

_COUNT = "__tidegate_count"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowCondition:
    """A condition over single rows of a target."""

    target: Target
    resolved: Resolved

    @classmethod
    def of(cls, target: Target, given: Column, *, operation: str) -> Self:
        """The target is another one where a subquery reads the table as of an earlier version.
        Raises `InvalidCommand` for what is no condition over the table's rows."""
        scope = Scope(target.nothing, target.instant)
        resolved = row_condition(scope, given, operation=operation)
        if not has_only_exists(target.spark, resolved.java):
            raise unsupported_subquery(operation, resolved.shown)
        if not has_subquery(target.spark, resolved.java):
            return cls(target=target, resolved=resolved)
        begun = target.read_by(target.nothing.where(given))
        if begun is not target:
            scope = Scope(begun.nothing, begun.instant)
            resolved = row_condition(scope, given, operation=operation)
        return cls(target=begun, resolved=resolved)

    @property
    def is_true(self) -> Column:
        """The condition over rows of the target, false where it is null."""
        return F.coalesce(self.resolved.column, F.lit(False))

    def _true_of(self, files: list[DataFile]) -> DataFrame:
        return self.target.rows(files).where(self.resolved.column)

    @property
    def _has_subquery(self) -> bool:
        return has_subquery(self.target.spark, self.resolved.java)

    @property
    def is_of_partitions(self) -> bool:
        """Whether the partition values of a file decide it for all of its rows."""
        return not self._has_subquery and names_partitions_only(
            self.target.layout, self.resolved.java
        )

    def candidates(self) -> list[DataFile]:
        """The files that may hold a row of which it is true, recorded as read; of a condition over
        partition columns those that hold no other."""
        target = self.target
        text = predicate_text(target.spark, target.layout, self.resolved.java)
        files = target.transaction.filter_files(text)
        if not self.is_of_partitions:
            return files
        return partitions_where(target.nothing, target.layout, files, self.resolved.column)

    def wholly(self, files: list[DataFile]) -> list[DataFile]:
        """Those of the files of which the log proves that it is true of every row."""
        target = self.target
        return wholly_matching(target.spark, target.layout, self.resolved.java, files)

    def matches(self, files: list[DataFile]) -> dict[str, int]:
        """How many rows of each file it is true of, by the file's path; files without one are left
        out. One Spark job, which tells the driver the files alone."""
        if not files:
            return {}
        counted = self._true_of(files).groupBy(FILE).agg(F.count(F.lit(1)).alias(_COUNT))
        return {files[row[FILE]].path: row[_COUNT] for row in counted.collect()}

    def positions(self, files: list[DataFile]) -> dict[int, BitMap64]:
        """Where the rows of which it is true are, by the place of their file among these; files
        without one are left out. One Spark job, which tells the driver sets of positions alone."""
        return positions_of(self._true_of(files)) if files else {}

    def parameters(self) -> dict[str, str]:
        """How Delta's history has it."""
        return {"predicate": json.dumps([self.resolved.recorded])}
