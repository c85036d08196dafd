"""Worlds are what their seed says, again and again; failing ones shrink."""

import pytest

from tests.chaos.judging.history import AbortedBy, Answer, Proposed
from tests.simulation.judging.mutations import without
from tests.simulation.ports.store import StoreFaults
from tests.simulation.shrink import shrink, signature
from tests.simulation.story import story
from tests.simulation.worlds.plan import Deed, Kind, Plan, Task, draw
from tests.simulation.worlds.world import World

APPENDS = (Task(kinds=(Kind.APPEND,), aborts=True), Task(kinds=(Kind.APPEND,), aborts=True))


def told(result):
    return [call for call in result.calls if isinstance(call, Proposed | AbortedBy)]


@pytest.mark.parametrize("managed", [False, True], ids=["plain", "catalog-managed"])
def test_a_world_without_trouble(managed):
    tasks = tuple(Task(kinds=(kind,)) for kind in (Kind.APPEND, Kind.REGISTER, Kind.NULLABLE))
    result = World(Plan(seed=1, catalog_managed=managed, tasks=tasks), {}).run()
    assert result.violations == []
    answers = [call.answer for call in told(result) if isinstance(call, Proposed)]
    assert answers[2:] == [Answer.LANDED] * 4


def test_a_seed_is_the_same_world_every_time():
    for seed in range(20):
        first, second = (World(draw(seed)).run() for _ in range(2))
        assert told(first) == told(second)
        assert (first.steps, first.deviations) == (second.steps, second.deviations)


def test_a_world_is_repeated_by_its_deviations():
    for seed in range(20):
        drawn = World(draw(seed)).run()
        again = World(draw(seed), drawn.deviations).run()
        assert told(drawn) == told(again)


def test_seeds_are_different_worlds():
    assert len({repr(told(World(draw(seed)).run())) for seed in range(20)}) > 15


def late(seed: int) -> Plan:
    """A world in which PUTs are late, and clients give up what they hear nothing of."""
    return Plan(
        seed=seed,
        catalog_managed=False,
        tasks=(*APPENDS, Task(kinds=(Kind.REGISTER,))),
        deeds=((50, Deed.CRASH),),
        store=StoreFaults(puts=(0.2, 0.0, 0.0, 0.3, 0.5)),
        lost_answers=0.5,
    )


def test_a_failing_world_shrinks_and_tells_its_story():
    with without("abort-fence"):
        seed = next(seed for seed in range(500) if World(late(seed)).run().violations)
        drawn = World(late(seed)).run()
        smaller = shrink(late(seed), drawn)
        assert smaller.signatures & {signature(violation) for violation in drawn.violations}
        assert len(smaller.deviations) <= len(drawn.deviations) / 2
        text = story(smaller, mutation="abort-fence")
    assert "LANDED_AFTER_ALL: id-" in text
    again = f"python -m tests.simulation --seed {seed} --seeds 1 --without abort-fence"
    assert text.endswith(again)
    assert World(smaller.plan, smaller.deviations).run().violations == []


def test_nothing_moves_on_while_a_world_is_judged():
    """A client of this one gives up, and what it sent is done when all trouble is over."""
    assert World(draw(9591)).run().violations == []


def test_versions_that_nobody_was_told_of_are_not_dated():
    """In this one others write many versions within a millisecond, and clean up all but the last,
    which the service then dates by itself."""
    assert World(draw(22_528)).run().violations == []


def test_a_database_goes_back_when_nobody_publishes():
    """In this one a PUT is on its way when an administrator is about to do it."""
    world = World(draw(10_750))
    assert world.run().violations == []
    assert world.deeds.restored
