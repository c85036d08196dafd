"""The condition of a DELETE or UPDATE, and the files in which it may be true."""

import json
from collections.abc import Mapping, Sequence
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
    has_user_function,
    row_condition,
)
from tidegate.spark.read.positions import with_membership
from tidegate.spark.tables.places import FILE, POSITION
from tidegate.spark.tables.predicates import partitions_where

_COUNT = "__tidegate_count"


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """The rows of which a condition was true: how many there are in each file, by its path, files
    without one left out; and for a condition that may be true of others when it is asked again,
    where they are."""

    counts: Mapping[str, int]
    positions: Mapping[str, BitMap64] | None = None


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

    def matches(self, files: list[DataFile]) -> Matches:
        """The rows of the files of which it is true. One Spark job; what it tells the driver are
        the files, and sets of positions for a subquery, whose rows may depend on their order
        (`LIMIT`) or on when they are read, and for functions of users."""
        if not files:
            return Matches(counts={})
        if self._has_subquery or has_user_function(self.target.spark, self.resolved.java):
            positions = {files[n].path: found for n, found in self.positions(files).items()}
            counts = {path: len(found) for path, found in positions.items()}
            return Matches(counts=counts, positions=positions)
        counted = self._true_of(files).groupBy(FILE).agg(F.count(F.lit(1)).alias(_COUNT))
        return Matches(counts={files[row[FILE]].path: row[_COUNT] for row in counted.collect()})

    def flagged(
        self, rows: DataFrame, files: Sequence[DataFile], matches: Matches, *, name: str
    ) -> DataFrame:
        """The rows of the files, with a column that says of which the condition was true."""
        if matches.positions is None:
            is_true = F.coalesce(self.resolved.column, F.lit(False))
            return rows.select("*", is_true.alias(name))
        found = {n: matches.positions[file.path] for n, file in enumerate(files)}
        return with_membership(rows, F.col(FILE), F.col(POSITION), found, name=name)

    def positions(self, files: list[DataFile]) -> dict[int, BitMap64]:
        """Where the rows of which it is true are, by the place of their file among these; files
        without one are left out. One Spark job, which tells the driver sets of positions alone."""
        return positions_of(self._true_of(files)) if files else {}

    def parameters(self) -> dict[str, str]:
        """How Delta's history has it."""
        return {"predicate": json.dumps([self.resolved.recorded])}
