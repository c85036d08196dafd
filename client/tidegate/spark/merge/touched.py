"""The files of a table that a MERGE touches, and which of their rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from tidegate.models import DataFile
from tidegate.spark.commands.marking import (
    BITS,
    CHUNK,
    Positions,
    bits_of,
    chunk_of,
    joined_chunks,
)
from tidegate.spark.merge.clauses import Action, Merge, When
from tidegate.spark.merge.rows import ACTION, OF_SOURCE, OF_TARGET
from tidegate.spark.read.positions import with_membership
from tidegate.spark.tables.places import FILE, POSITION

MARKED = "__tidegate_marked"
_MATCHES = "__tidegate_matches"
_COUNTS = 3
"""Columns of a group before the counts of its clauses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """Files with rows that match, and by clause how many rows change. `positions` are those of the
    rows that change, by the place of their file, where such rows are marked; None where the files
    are written again. `most_matches` is the number of rows of the source that match one row."""

    by_clause: Sequence[int]
    files: Sequence[DataFile] = ()
    positions: Positions | None = None
    most_matches: int = 0

    @classmethod
    def of(cls, acted: DataFrame, what: Merge, files: Sequence[DataFile], *, marks: bool) -> Self:
        """What the rows of the files with their actions say, found by one Spark job."""
        by_row = acted.groupBy(FILE, POSITION).agg(
            F.count(F.col(OF_SOURCE)).alias(_MATCHES),
            F.max(ACTION).alias(ACTION),
        )
        chunk = chunk_of(F.col(POSITION)) if marks else F.lit(0)
        clauses = [F.count(F.when(F.col(ACTION) == i, 1)) for i in range(len(what.clauses))]
        bits = [bits_of(F.when(F.col(ACTION) >= 0, F.col(POSITION))).alias(BITS)] if marks else []
        groups = by_row.groupBy(FILE, chunk.alias(CHUNK)).agg(
            F.max(_MATCHES).alias(_MATCHES), *clauses, *bits
        )
        found = groups.collect()
        changing = {row[FILE] for row in found if _changes(row, what)}
        numbers = sorted({row[FILE] for row in found} if not what.matched_only else changing)
        places = {number: place for place, number in enumerate(numbers)}
        positions = joined_chunks(found) if marks else None
        return cls(
            by_clause=[sum(row[_COUNTS + i] for row in found) for i in range(len(clauses))],
            files=[files[number] for number in numbers],
            positions=None if positions is None else {places[n]: p for n, p in positions.items()},
            most_matches=max((row[_MATCHES] for row in found), default=0),
        )

    @property
    def changes_any(self) -> bool:
        """Whether a row changes, or a file is to be written again."""
        return bool(self.files if self.positions is None else self.positions)

    def of_action(self, what: Merge, action: Action) -> Mapping[When, int]:
        """How many rows clauses with this action changed, by the rows that they are for."""
        found = dict.fromkeys(When, 0)
        for clause, count in zip(what.clauses, self.by_clause, strict=True):
            if clause.action is action:
                found[clause.when] += count
        return found


def marked_rows(rows: DataFrame, positions: Positions) -> DataFrame:
    """The rows, and whether each is among those that are marked."""
    return with_membership(rows, F.col(FILE), F.col(POSITION), positions, name=MARKED)


def acting(acted: DataFrame) -> DataFrame:
    """The rows with an action: of the table exactly those that are marked, whatever the source says
    when it is read again, so that none is lost and none is there twice."""
    is_new = F.col(OF_TARGET).isNull() & (F.col(ACTION) >= 0)
    return acted.where(is_new | F.coalesce(F.col(MARKED), F.lit(False)))


def _changes(row: Row, what: Merge) -> bool:
    return any(row[_COUNTS : _COUNTS + len(what.clauses)])
