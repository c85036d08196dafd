"""Every numbered step of a commit's way is in the code, and a normal commit passes it."""

import inspect

import pytest

from tests.repository import ROOT
from tests.service.instances import Instance, Point
from tests.service.process.killed.crashing import new_body
from tidegate_service.app import serve
from tidegate_service.core.context import Context
from tidegate_service.core.observe.faults import NO_FAULTS, Side, Step

MANAGED = [step for step in Step if step.startswith("M")]
PUBLISHING = [Step.M8_PUBLISH, Step.M9_MARK_PUBLISHED, Step.M10_FORGET_CONTENT]
PLAIN = [Step.M0_FIND_TABLE, *(step for step in Step if step.startswith("O"))]


def passed(instance: Instance, steps: list[Step]) -> tuple[list[Point], list[Point]]:
    """What the instance tells that it passes of these steps, of committing and of publishing, until
    it has passed all of both. Publishing counts from its last beginning: the version before may
    still be at its end. Committing goes back to a step that it comes to again: whoever has to look
    at the log leaves the lock for it. Upkeep is at work beside it and has steps of its own."""
    committing: list[Point] = []
    publishing: list[Point] = []
    while len(committing) + len(publishing) < 2 * len(steps):
        point = instance.reached()
        if point[0] not in steps:
            continue
        if point[0] not in PUBLISHING:
            if point in committing:
                del committing[committing.index(point) :]
            committing.append(point)
        elif point == (PUBLISHING[0], Side.BEFORE):
            publishing = [point]
        elif publishing:
            publishing.append(point)
    return committing, publishing


def both_sides(steps: list[Step]) -> list[Point]:
    return [(step, side) for step in steps for side in Side]


@pytest.mark.parametrize(
    ("catalog_managed", "steps"), [(False, PLAIN), (True, MANAGED)], ids=["plain", "managed"]
)
def test_a_normal_commit_passes_every_point_of_its_kind(two, catalog_managed, steps):
    table = two.create(catalog_managed=catalog_managed)
    table.caught_up()
    two.victim.trace()
    answer = table.propose(two.victim, new_body())
    assert answer is not None
    assert answer.status_code == 201
    committing, publishing = passed(two.victim, steps)
    assert committing == both_sides([step for step in steps if step not in PUBLISHING])
    assert publishing == (both_sides(PUBLISHING) if catalog_managed else [])
    two.victim.kill()
    two.restart()


def test_the_points_are_those_of_the_reliability_document():
    numbers = [*(f"M{n}" for n in range(11)), *(f"O{n}" for n in range(1, 10))]
    assert [step.value for step in Step] == numbers
    assert {*MANAGED, *PLAIN} == set(Step)


def test_nothing_switches_them_on_but_composition():
    assert Context.__dataclass_fields__["faults"].default is NO_FAULTS
    assert inspect.signature(serve).parameters["faults"].default is NO_FAULTS
    service = ROOT / "service/tidegate_service"
    outside = [path for room in ("settings", "cli") for path in (service / room).rglob("*.py")]
    assert len(outside) > 10
    assert [path for path in outside if "fault" in path.read_text().replace("default", "")] == []
