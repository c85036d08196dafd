"""CHECK constraints, added and dropped."""

from pyspark.sql import functions as F

from tidegate.models import Receipt
from tidegate.spark.alter.alteration import Alteration
from tidegate.spark.expressions.definitions import check_condition
from tidegate.spark.expressions.errors import InvalidCommand
from tidegate_protocol.features.properties import CONSTRAINT_PREFIX

_ASSUMES_IF_EXISTS = "spark.databricks.delta.constraints.assumesDropIfExists.enabled"


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
    check_condition(alteration.spark, alteration.schema, name, expression)
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


def _expression(alteration: Alteration, name: str) -> str | None:
    configuration = alteration.metadata.configuration
    return next((sql for key, sql in configuration.items() if key.lower() == _property(name)), None)


def _property(name: str) -> str:
    return CONSTRAINT_PREFIX + name.lower()
