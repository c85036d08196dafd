"""Counter-examples of the models on the real use cases: what breaks a promise in a model with a
defect must not break it here."""

import pytest

from tests.model.cases import APPEND, NEEDS_FOREIGN, OF_FOREIGN, READER, RED
from tests.model.defects import Defect
from tests.model.explore import Step, explore
from tests.model.replay import Replay, body_of
from tests.service.faults import FaultyStorage
from tests.service.world import World, make_world
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.ports.outcomes import Committed
from tidegate_service.storage import ObjectStorage

pytestmark = pytest.mark.anyio


@pytest.fixture
def faults(tmp_path) -> FaultyStorage:
    return FaultyStorage(ObjectStorage(warehouse=tmp_path.as_uri()))


@pytest.fixture
def world(index, faults, tmp_path) -> World:
    return make_world(index, faults, tmp_path.as_uri())


PLAYED = (
    Defect.ABORT_WITHOUT_FENCE,
    Defect.UNKNOWN_TAKEN_FOR_FAILURE,
    Defect.LATE_PUT_NOT_AWAITED,
    Defect.DECISION_REUSED,
    Defect.ID_NOT_LOOKED_UP_AGAIN,
    Defect.INVALID_AT_STALE_HEAD,
    Defect.IDS_FORGOTTEN_WITH_TABLE,
)


@pytest.mark.parametrize("defect", PLAYED, ids=lambda defect: defect.name.lower())
async def test_a_counter_example_breaks_nothing_here(world, faults, defect):
    case = RED[defect]
    schedule = explore(case.model(defect)).schedule
    replay = Replay(world, faults, case.kinds)
    await replay.run(schedule)
    assert replay.told
    assert replay.broken() == []
    if defect is Defect.INVALID_AT_STALE_HEAD:
        # At the log's end it is valid.
        assert replay.told == {"b": [2]}


A, B = ("a",), ("b",)
TOO_OLD = (
    Step("propose", 1, A),
    Step("put", 1, ("a", "1"), "created"),
    Step("commit", 1, (), "answered"),
    Step("propose", 1, B),
    Step("session ended", 1),
    Step("clean up below", None, ("1",)),
    Step("rebuild"),
    Step("propose", 2, B),
    Step("put", 1, ("b", "2"), "created"),
)
"""What TOO_OLD_WITHOUT_FENCE comes to with one proposal after the other."""


async def test_too_old_is_final(world, faults):
    replay = Replay(world, faults, (APPEND, OF_FOREIGN))
    await replay.run(TOO_OLD)
    assert replay.told == {"a": [1], "b": [None]}
    assert replay.broken() == []
    # Nor does anything make it land from here.
    await replay.run_on((Step("propose", 2, B),))
    assert replay.broken() == []


async def test_a_broken_promise_is_seen(world, faults):
    """The judge of this file finds what it is for."""
    replay = Replay(world, faults, (APPEND, READER))
    await replay.run((Step("propose", 1, A),))
    assert (replay.told, replay.broken()) == ({"a": [1]}, [])
    replay.told["a"].append(None)
    assert replay.broken() == ["a was told never, and landed as [1]"]
    replay.told["a"] = [1, 3]
    assert replay.broken() == ["a landed as [1, 3]"]


async def test_the_kinds_are_what_the_model_takes_them_for(world, faults):
    replay = Replay(world, faults, (READER, NEEDS_FOREIGN))
    await replay.run((Step("foreign commit", None, ("1",)), Step("propose", 1, A)))
    assert replay.told == {"a": [None]}
    outcome = await propose(world.context, replay.table.id, body_of(NEEDS_FOREIGN, "b"))
    assert isinstance(outcome, Committed)
    alone = Replay(world, faults, (APPEND, OF_FOREIGN))
    await alone.run((Step("propose", 1, A), Step("propose", 1, B)))
    assert alone.told == {"a": [1], "b": [2]}
