"""CHECK constraints, added and dropped."""

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import functions as F

from tidegate.models import Receipt
from tidegate.spark.alter.alteration import Alteration
from tidegate.spark.alter.definitions import expression_of
from tidegate.spark.expressions.errors import InvalidCommand, of_spark
from tidegate.spark.expressions.resolution import has_subquery
from tidegate.spark.tables.schemas import as_nullable
from tidegate_protocol.features.properties import CONSTRAINT_PREFIX

_ASSUMES_IF_EXISTS = "spark.databricks.delta.constraints.assumesDropIfExists.enabled"
_NOT_BOOLEAN = "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN"


def add_constraint(alteration: Alteration, name: str, expression: str) -> Receipt:
    """ADD CONSTRAINT: from now on the expression is true of every row, as it is of those that there
    are. These are looked at in one Spark job; who adds or removes rows meanwhile is a conflict.

    Raises `InvalidCommand`, for rows of which it is not true too, `UnsupportedTable` for a table
    that the client does not read, and what `Transaction.commit` raises.
    """
    known = _expression(alteration, name)
    if known is not None:
        raise InvalidCommand(
            "DELTA_CONSTRAINT_ALREADY_EXISTS",
            f"Constraint '{name}' already exists. Please delete the old constraint first. Old "
            f"constraint: {known}",
        )
    _check_condition(alteration, name, expression)
    holds = F.coalesce(F.expr(expression), F.lit(False))
    broken = alteration.rows().where(~holds).count()
    if broken:
        raise InvalidCommand(
            "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION",
            f"{broken} rows in {alteration.layout.name} violate the new CHECK constraint "
            f"({expression})",
        )
    configuration = {**alteration.metadata.configuration, _property(name): expression}
    alteration.set_metadata({"configuration": configuration})
    return alteration.commit("ADD CONSTRAINT", {"name": name, "expr": expression})


def drop_constraint(alteration: Alteration, name: str, *, if_exists: bool) -> Receipt:
    """DROP CONSTRAINT. One that is not there is an error, unless `if_exists`, or unless the session
    assumes that."""
    known = _expression(alteration, name)
    assumes = str(alteration.spark.conf.get(_ASSUMES_IF_EXISTS, "false")).lower() == "true"
    if known is None and not (if_exists or assumes):
        raise InvalidCommand(
            "DELTA_CONSTRAINT_DOES_NOT_EXIST",
            f"Cannot drop nonexistent constraint {name} from table {alteration.layout.name}. To "
            "avoid throwing an error, provide if_exists or set the SQL session configuration "
            f"{_ASSUMES_IF_EXISTS} to true",
        )
    kept = {
        key: value
        for key, value in alteration.metadata.configuration.items()
        if key.lower() != _property(name)
    }
    alteration.set_metadata({"configuration": kept})
    parameters = {"name": name, "existed": "false" if known is None else "true"}
    if known is not None:
        parameters["expr"] = known
    return alteration.commit("DROP CONSTRAINT", parameters)


def _check_condition(alteration: Alteration, name: str, expression: str) -> None:
    """Raise `InvalidCommand` for what is no condition that every writer can ask of a row."""
    # In parentheses, behind which Spark takes no name: `a > 0 b` is no condition to other readers.
    parsed = expression_of(alteration.spark, f"({expression}\n)")
    if has_subquery(alteration.spark, parsed):
        raise InvalidCommand(
            "DELTA_UNSUPPORTED_EXPRESSION_CHECK_CONSTRAINT",
            f"Found unsupported expression in CHECK constraint {name}: a subquery ({expression})",
        )
    frame = alteration.spark.createDataFrame([], as_nullable(alteration.schema))
    try:
        plan = frame.where(F.expr(expression))._jdf.queryExecution().analyzed()
    except (AnalysisException, ParseException) as error:
        if (error.getCondition() or "") == _NOT_BOOLEAN:
            raise InvalidCommand(
                "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT",
                f"CHECK constraint '{name}' ({expression}) should be a boolean expression",
            ) from error
        raise of_spark(error) from error
    if not plan.condition().deterministic():
        raise InvalidCommand(
            "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_CHECK_CONSTRAINT",
            f"Found a non-deterministic expression in CHECK constraint {name} ({expression})",
        )


def _expression(alteration: Alteration, name: str) -> str | None:
    configuration = alteration.metadata.configuration
    return next((sql for key, sql in configuration.items() if key.lower() == _property(name)), None)


def _property(name: str) -> str:
    return CONSTRAINT_PREFIX + name.lower()
