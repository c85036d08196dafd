"""Running a vector."""

import pytest

import tests.spark.dml.operations.writes  # noqa: F401 - it registers the operations
from tests.spark.dml.errors import check_error
from tests.spark.dml.expect import EXPECTATIONS, OF_THE_RUN, check_rows
from tests.spark.dml.operations.registry import OPERATIONS
from tests.spark.dml.target import build
from tests.spark.dml.world import World


def run(world: World) -> None:
    """Do the vector's operations and assert what it expects of them."""
    expect = world.vector.expect
    unknown = expect.keys() - OF_THE_RUN - EXPECTATIONS.keys()
    assert not unknown, f"nothing compares {sorted(unknown)}"
    failing = expect.get("at") if "error" in expect else None
    if failing == -1:
        with pytest.raises(Exception) as refusal:  # noqa: PT011 - the vector says which
            build(world)
        check_error(refusal.value, expect, first=world.first)
        return
    build(world)
    after = expect.get("rows_after", ())
    for number, op in enumerate(world.vector.ops):
        function = OPERATIONS[op["op"]]
        if number == failing:
            _fails(world, number)
            break
        function(world, op)
        if number < len(after) and after[number] is not None:
            check_rows(world, after[number])
    if "rows" in expect and world.found is not None:
        check_rows(world, expect["rows"])
    for name, value in expect.items():
        if name not in OF_THE_RUN:
            EXPECTATIONS[name](world, value)


def _fails(world: World, number: int) -> None:
    op = world.vector.ops[number]
    version = None if world.found is None else world.table.version
    with pytest.raises(Exception) as refusal:  # noqa: PT011 - the vector says which
        OPERATIONS[op["op"]](world, op)
    check_error(refusal.value, world.vector.expect, first=world.first)
    if version is not None:
        assert world.table.version == version, "the operation that failed left a version"
