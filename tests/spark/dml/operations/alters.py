"""ALTER TABLE of vectors."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.spark.dml.expect import expectation
from tests.spark.dml.operations.registry import operation
from tests.spark.dml.vectors import Op
from tests.spark.dml.world import World
from tidegate.models import Receipt
from tidegate.spark.alter.alter import Alter
from tidegate_protocol.features.computed_columns import identity


@operation("alter")
def alter(world: World, op: Op) -> None:
    _ACTIONS[op["action"]](world.table.alter(spark=world.spark), op)


def _change_column(alter: Alter, op: Op) -> Receipt:
    column = op["column"]
    if "set_default" in op:
        return alter.set_default(column, op["set_default"])
    if op.get("drop_default"):
        return alter.drop_default(column)
    nullable = {"set_not_null": False, "drop_not_null": True}
    given = [value for name, value in nullable.items() if op.get(name)]
    return alter.change_column(
        column,
        type=op.get("type"),
        comment=op.get("comment"),
        nullable=given[0] if given else None,
        position=op.get("position"),
    )


_ACTIONS: Mapping[str, Callable[[Alter, Op], Receipt]] = {
    "add_columns": lambda alter, op: alter.add_columns(op["columns"]),
    "add_constraint": lambda alter, op: alter.add_constraint(op["name"], op["expr"]),
    "change_column": _change_column,
    "drop_columns": lambda alter, op: alter.drop_columns(*op["columns"]),
    "drop_constraint": lambda alter, op: alter.drop_constraint(
        op["name"], if_exists=op["if_exists"]
    ),
    "rename_column": lambda alter, op: alter.rename_column(op["from"], op["to"]),
    "set_properties": lambda alter, op: alter.set_properties(op["properties"]),
    "sync_identity": lambda alter, op: alter.sync_identity(op["column"]),
    "unset_properties": lambda alter, op: alter.unset_properties(*op["keys"]),
}


@expectation("high_water_mark_after")
def _high_water_mark_after(world: World, value: Sequence[Mapping[str, Any] | None]) -> None:
    for number, marks in enumerate(value, start=1):
        schema = world.table.as_of(world.version(number)).schema
        for column, mark in (marks or {}).items():
            field = schema.field(column)
            assert field is not None
            found = identity(field)
            assert found is not None
            assert found.mark == mark
