"""What a command refuses, under Delta's and Spark's error classes."""

import re
from collections.abc import Sequence

from pyspark.errors import AnalysisException, PySparkException

from tidegate.errors import TidegateError

_AROUND = re.compile(r"^\[[^\]]+\] *(?P<text>.*?)(?: *SQLSTATE: .*)?$", re.DOTALL)


class InvalidCommand(TidegateError, AnalysisException):
    """The command cannot be made sense of over this table. Nothing was run, written or proposed.

    `error_class` is Delta's or Spark's; PySpark's `getCondition` says it, too. It is an
    `AnalysisException`, as Delta's own are.
    """

    next_step = "correct the command"

    def __init__(self, error_class: str, detail: str, *, hint: str | None = None) -> None:
        super().__init__(detail, hint=hint, definite=True, error_class=error_class)

    def getCondition(self) -> str:
        """The error class."""
        return self.error_class or ""

    def getErrorClass(self) -> str:
        """The error class, by its older name."""
        return self.getCondition()

    def getMessage(self) -> str:
        """The whole text."""
        return str(self)


def of_spark(error: PySparkException) -> InvalidCommand:
    """Spark's refusal of an expression, under its own class."""
    return InvalidCommand(error.getCondition() or "ANALYSIS", words_of(error))


def words_of(error: PySparkException) -> str:
    """What Spark says, without its class, its SQLSTATE and the plan."""
    found = _AROUND.match(error.getMessage() or str(error))
    text = str(error) if found is None else found["text"]
    return text.split("\n'")[0].strip()


def unresolved(name: str, clause: str, columns: Sequence[str]) -> InvalidCommand:
    """A name that a part of a MERGE does not know."""
    return InvalidCommand(
        "DELTA_MERGE_UNRESOLVED_EXPRESSION",
        f"Cannot resolve {name} in {clause} given columns {', '.join(columns)}",
    )


def unsupported_subquery(operation: str, condition: str) -> InvalidCommand:
    """A subquery that is no EXISTS."""
    return InvalidCommand(
        "DELTA_UNSUPPORTED_SUBQUERY",
        f"Subqueries are not supported in the {operation} (condition = {condition})",
        hint="of subqueries, DELETE and UPDATE take [NOT] EXISTS in their conditions; join the "
        "other table by a MERGE",
    )


def conflicting(columns: Sequence[str]) -> InvalidCommand:
    """Columns that are assigned to twice."""
    return InvalidCommand(
        "DELTA_CONFLICT_SET_COLUMN",
        f"There is a conflict from these SET columns: {', '.join(columns)}",
    )


def nested_mismatch(name: str, source: str, target: str) -> InvalidCommand:
    """A struct whose fields are not those of the column."""
    return InvalidCommand(
        "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION",
        f"Cannot cast {source} to {target}. All nested columns must match (column {name})",
        hint="name all fields, or evolve the schema by withSchemaEvolution",
    )


def not_mergeable(name: str, current: str, update: str) -> InvalidCommand:
    """A column whose types in table and source do not go together."""
    return InvalidCommand(
        "DELTA_FAILED_TO_MERGE_FIELDS",
        f"Failed to merge fields '{name}' and '{name}': [DELTA_MERGE_INCOMPATIBLE_DATATYPE] "
        f"Failed to merge incompatible data types {current} and {update}",
    )
