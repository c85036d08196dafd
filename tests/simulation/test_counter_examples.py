"""Every counter-example of the models, on the real use cases: with its defect it breaks the promise
that the model says, and without it none."""

from functools import cache

import pytest

from tests.model.cases import RED
from tests.model.defects import Defect
from tests.model.explore import Step, explore
from tests.simulation.judging.counter_examples import COMES_TO, PREMISES
from tests.simulation.judging.scripted import Played

every_defect = pytest.mark.parametrize("defect", Defect, ids=lambda defect: defect.name.lower())


@cache
def schedule_of(defect: Defect) -> tuple[Step, ...]:
    return explore(RED[defect].model(defect)).schedule


@every_defect
def test_with_its_defect_it_breaks_what_the_model_says(defect):
    kind, with_defect = COMES_TO[defect]
    with with_defect():
        found = Played(RED[defect].kinds).play(schedule_of(defect), strictly=True)
    assert kind in {violation.kind for violation in found}


@every_defect
def test_without_it_nothing_is_broken(defect):
    played = Played(RED[defect].kinds, premises=defect in PREMISES)
    assert played.play(schedule_of(defect), strictly=False) == []
    # What keeps the promise is at most one step that is another one; all others were done. Where
    # that one is a PUT, there may be no COMMIT of it.
    assert [step.what for step in played.left_out[1:]] in ([], ["commit"])
