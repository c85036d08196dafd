"""DELETE, UPDATE, MERGE and OPTIMIZE of vectors."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.spark.dml.expect import expectation
from tests.spark.dml.operations.registry import operation
from tests.spark.dml.rows import frame, parsed
from tests.spark.dml.vectors import Op
from tests.spark.dml.world import World
from tests.spark.tables import actions
from tidegate.spark.commands.delete import delete as run_delete
from tidegate.spark.commands.outcome import Changed
from tidegate.spark.expressions.arguments import condition_column
from tidegate.spark.merge.builder import MergeBuilder

_Values = Mapping[str, str] | Sequence[tuple[str, str]] | None


@operation("delete")
def delete(world: World, op: Op) -> None:
    # Vectors with a correlated subquery call the table so.
    condition = condition_column(op["where"])
    _tell(world, run_delete(world.table, world.spark, condition, alias="t"))


@operation("update")
def update(world: World, op: Op) -> None:
    values = _values(op["set"])
    assert values is not None
    _tell(world, world.table.update(values, op["where"], spark=world.spark))


@operation("merge")
def merge(world: World, op: Op) -> None:
    given = world.vector.source
    assert given is not None
    source = frame(world.spark, parsed(given["schema"]), given["rows"]).alias("s")
    builder = world.table.merge(source, op["on"], alias="t")
    if op["schema_evolution"]:
        builder = builder.withSchemaEvolution()
    for clause in op["clauses"]:
        builder = _with(builder, clause)
    _tell(world, builder.execute())


@operation("optimize")
def optimize(world: World, op: Op) -> None:
    found = world.table.optimize(op["where"], z_order_by=op["zorder_by"] or None, spark=world.spark)
    world.told["metrics"] = found.metrics


def _with(builder: MergeBuilder, clause: Mapping[str, Any]) -> MergeBuilder:
    condition = clause["and"]
    match clause["when"], clause["action"]:
        case "matched", "update":
            return builder.whenMatchedUpdate(condition, _values(clause["set"]))
        case "matched", "update_all":
            return builder.whenMatchedUpdateAll(condition)
        case "matched", "delete":
            return builder.whenMatchedDelete(condition)
        case "not_matched", "insert":
            return builder.whenNotMatchedInsert(condition, _values(clause["values"]))
        case "not_matched", "insert_all":
            return builder.whenNotMatchedInsertAll(condition)
        case "not_matched_by_source", "update":
            return builder.whenNotMatchedBySourceUpdate(condition, _values(clause["set"]))
        case "not_matched_by_source", "delete":
            return builder.whenNotMatchedBySourceDelete(condition)
    raise AssertionError(f"no clause is {clause}")


def _values(given: _Values) -> dict[str, str] | None:
    """The assignments; a column that is given twice is spelt in two ways."""
    if given is None or isinstance(given, Mapping):
        return None if given is None else dict(given)
    found: dict[str, str] = {}
    for column, value in given:
        found[column if column not in found else f"`{column}`"] = value
    return found


def _tell(world: World, changed: Changed) -> None:
    world.told["affected_rows"] = {
        "num_affected_rows": changed.rows,
        "num_updated_rows": changed.updated,
        "num_deleted_rows": changed.deleted,
        "num_inserted_rows": changed.inserted,
    }


@expectation("affected_rows")
def _affected_rows(world: World, value: int | Mapping[str, int]) -> None:
    found = world.told["affected_rows"]
    assert value == (found["num_affected_rows"] if isinstance(value, int) else found)


@expectation("metrics_after")
def _metrics_after(world: World, value: Sequence[Mapping[str, int]]) -> None:
    found = world.table.history(limit=len(value))[::-1]
    for commit, expected in zip(found, value, strict=True):
        metrics = {name: commit.operation_metrics.get(name) for name in expected}
        assert metrics == {name: str(number) for name, number in expected.items()}


@expectation("deletion_vectors_added")
def _deletion_vectors_added(world: World, value: int) -> None:
    added = actions(world.table, world.table.version, "add")
    assert sum(1 for add in added if add.get("deletionVector")) == value
