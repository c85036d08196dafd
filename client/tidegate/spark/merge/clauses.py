"""The clauses of a MERGE, in the order in which they are tried."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from pyspark.sql import Column, DataFrame

from tidegate.spark.expressions.errors import InvalidCommand


class When(Enum):
    """Which rows a clause is for."""

    MATCHED = "MATCHED"
    NOT_MATCHED = "NOT MATCHED"
    NOT_MATCHED_BY_SOURCE = "NOT MATCHED BY SOURCE"


class Action(Enum):
    """What becomes of them."""

    UPDATE = "UPDATE"
    DELETE = "DELETE"
    INSERT = "INSERT"


_LAST_ONLY = {
    When.MATCHED: "DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION",
    When.NOT_MATCHED: "DELTA_NON_LAST_NOT_MATCHED_BY_TARGET_CLAUSE_OMIT_CONDITION",
    When.NOT_MATCHED_BY_SOURCE: "DELTA_NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION",
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Clause:
    """One WHEN. `values` are by what they are assigned to; None is the star, and a DELETE has no
    use for them."""

    when: When
    action: Action
    condition: Column | None
    values: Mapping[str, Column] | None

    @property
    def is_star(self) -> bool:
        """Whether all columns of the source are meant."""
        return self.action is not Action.DELETE and self.values is None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Merge:
    """What a MERGE is to do. Raises `InvalidCommand` for clauses that do not go together."""

    source: DataFrame
    condition: Column
    clauses: Sequence[Clause]
    alias: str | None
    evolves: bool

    def __post_init__(self) -> None:
        if not self.clauses:
            raise InvalidCommand(
                "DELTA_MERGE_MISSING_WHEN",
                "There must be at least one WHEN clause in a MERGE statement",
            )
        for when in When:
            of_kind = self.of(when)
            if any(clause.condition is None for clause in of_kind[:-1]):
                raise InvalidCommand(
                    _LAST_ONLY[when],
                    f"When there are more than one {when.value} clauses in a MERGE statement, only "
                    f"the last {when.value} clause can omit the condition",
                )

    def of(self, when: When) -> list[Clause]:
        """The clauses for these rows."""
        return [clause for clause in self.clauses if clause.when is when]

    @property
    def inserts_only(self) -> bool:
        """Whether no row that is there can change."""
        return all(clause.when is When.NOT_MATCHED for clause in self.clauses)

    @property
    def matched_only(self) -> bool:
        """Whether only matched rows can change."""
        return all(clause.when is When.MATCHED for clause in self.clauses)

    @property
    def may_match_often(self) -> bool:
        """Whether several rows of the source may match one row of the table: it goes either way."""
        matched = self.of(When.MATCHED)
        return (
            len(matched) == 1
            and matched[0].action is Action.DELETE
            and matched[0].condition is None
        )
