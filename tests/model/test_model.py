"""Both commit points, explored to a bound: no order of steps breaks a promise."""

import pytest

from tests.model.cases import GREEN
from tests.model.explore import explore

_LEAST_STATES = {"plain": 20_000, "managed": 5_000}


@pytest.mark.parametrize("case", GREEN, ids=lambda case: case.name)
def test_no_order_of_steps_breaks_a_promise(case):
    found = explore(case.model())
    print(f"{case.name}: {found.states} states, {found.steps} steps, {found.depth} deep")
    assert found.broken == "", found.told()
    assert found.is_whole
    assert found.states > _LEAST_STATES[case.name.split("-")[0]]
