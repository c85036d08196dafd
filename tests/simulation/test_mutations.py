"""Each mend that is switched off is found, and by a world that holds with it."""

import re

import pytest

from tests.repository import ROOT
from tests.simulation.judging.mutations import MUTATIONS, without
from tests.simulation.worlds.aimed import AIMED
from tests.simulation.worlds.plan import draw
from tests.simulation.worlds.world import World

DRAWN = {
    "private-folders": 6,
    "looks-before-creation": 83,
    "looks-after-restore": 19,
    "422-at-the-logs-end": 1111,
    "404-of-one-attempt": 154,
    "saved-portions": 49,
    "kept-ids": 1089,
    "adoption": 28,
    "bounded-silence": 111,
    "own-answers": 162,
    "older-ids": 1583,
    "abort-fence": 2581,
    "looked-up-ids": 1,
    "compared-bytes": 230,
}
"""The first seed of a world, of those that are drawn without an aim, that fails by it, as
`first_seeds.py` finds it."""
FIRST_AIMED = {
    "looks-before-creation": 7,
    "fenced-422": 0,
    "fenced-too-old": 47,
    "404-of-one-attempt": 3,
    "settled-places": 3,
    "hidden-logs": 0,
    "gaps": 9,
    "own-logs": 2,
}
"""The same of those that are aimed at it."""
AROUND = 3
"""A change of the service moves what a seed comes to: so many worlds before and behind it count,
too, and so many of those that are aimed at the mend."""
WORLDS = 150
TOLD = re.compile(r"^\| [^|]+ \| `([a-z0-9-]+)` \| ([0-9,]*) ?\| ([0-9,]*) ?\|$", re.MULTILINE)


def worlds(name):
    """Functions that make a world, the likeliest to fail first."""
    if name in DRAWN:
        first = DRAWN[name]
        around = range(max(0, first - AROUND), first + AROUND + 1)
        for seed in sorted(around, key=lambda seed: abs(seed - first)):
            yield lambda seed=seed: World(draw(seed))
    for seed in range(WORLDS if name in AIMED else 0):
        yield lambda seed=seed: AIMED[name](seed)


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mend_that_is_switched_off_is_found(name):
    for world in worlds(name):
        with without(name):
            broken = world().run().violations
        if broken and not world().run().violations:
            return
    pytest.fail("no world is any worse without it")


def test_the_page_tells_of_the_same_seeds():
    told = {
        name: (drawn.replace(",", ""), aimed.replace(",", ""))
        for name, drawn, aimed in TOLD.findall((ROOT / "docs" / "faults.md").read_text())
    }
    assert told == {
        name: (str(DRAWN.get(name, "")), str(FIRST_AIMED.get(name, ""))) for name in MUTATIONS
    }
    assert FIRST_AIMED.keys() == AIMED.keys()


@pytest.mark.parametrize("name", AIMED)
def test_worlds_that_are_aimed_hold(name):
    for seed in range(20):
        assert AIMED[name](seed).run().violations == []
