"""Both commit points, explored to a bound: no order of steps breaks a promise, and every defect
that a model can be given does.

`-s` prints the counter-examples; `docs/development.md` says how they are written.
"""

import pytest

from tests.model.cases import ALSO_RED, GREEN, RED, Case
from tests.model.defects import Defect
from tests.model.explore import Model, Step, explore

LONGEST = 12
"""Steps of a counter-example: more than a reader follows would be none."""
_LEAST_STATES = {"plain": 20_000, "managed": 5_000}


@pytest.mark.parametrize("case", GREEN, ids=lambda case: case.name)
def test_no_order_of_steps_breaks_a_promise(case):
    found = explore(case.model())
    print(f"{case.name}: {found.states} states, {found.steps} steps, {found.depth} deep")
    assert found.broken == "", found.told()
    assert found.is_whole
    assert found.states > _LEAST_STATES[case.name.split("-")[0]]


@pytest.mark.parametrize(
    ("defect", "case"),
    [*RED.items(), *ALSO_RED],
    ids=lambda value: value.name.lower(),
)
def test_every_defect_breaks_a_promise(defect: Defect, case: Case):
    model = case.model(defect)
    found = explore(model)
    print(f"{defect.value}:\n{found.told()}")
    assert found.broken
    assert len(found.schedule) <= LONGEST
    assert broken_by(model, found.schedule) == found.broken


def test_every_defect_is_tried():
    assert RED.keys() == set(Defect)


def test_the_bound_on_states_is_told():
    found = explore(GREEN[0].model(), most=100)
    assert (found.is_whole, found.broken) == (False, "")
    assert found.states > 100


def broken_by(model: Model, schedule: tuple[Step, ...]) -> str:
    """What the steps break, done one after the other by those who are named; all but the last
    break nothing."""
    state = model.initial()
    for step in schedule:
        ((after, broken),) = {
            (after, broken) for raw, after, broken in model.steps(state) if model.named(raw) == step
        }
        assert (broken is not None) == (step is schedule[-1]), step
        state = after
    return broken or ""
