"""A port with fault points: its calls, told of on both sides."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tidegate_service.core.observe.faults import NO_FAULTS, AnyStep, Side, Step
from tidegate_service.core.observe.ports_with_faults import with_faults


class Shelf:
    """A port of this test alone: one call that is awaited, one that is entered, and a value."""

    def __init__(self, told: list[object]) -> None:
        self.told = told
        self.name = "shelf"

    async def put(self, what: str) -> str:
        self.told.append(what)
        if what == "too heavy":
            raise OSError(what)
        return f"{what} is there"

    @asynccontextmanager
    async def lock(self, *, wait: bool) -> AsyncIterator[str]:
        self.told.append(f"locked {wait=}")
        yield "locked"
        self.told.append("released")


class Told:
    def __init__(self, told: list[object], *, ends_at: tuple[AnyStep, Side] | None = None) -> None:
        self.told = told
        self.ends_at = ends_at

    async def reached(self, step: AnyStep, side: Side) -> None:
        self.told.append((step, side))
        if (step, side) == self.ends_at:
            raise ConnectionError("the instance is gone")


STEPS = {Shelf.put: Step.O6_PUT, Shelf.lock: Step.O1_LOCK}


def test_without_fault_points_it_is_the_port_itself():
    shelf = Shelf([])
    assert with_faults(shelf, NO_FAULTS, STEPS) is shelf


def test_both_sides_of_a_call_are_told_of():
    told: list[object] = []
    shelf = with_faults(Shelf(told), Told(told), STEPS)
    assert asyncio.run(shelf.put("a book")) == "a book is there"
    assert told == [(Step.O6_PUT, Side.BEFORE), "a book", (Step.O6_PUT, Side.AFTER)]
    assert shelf.name == "shelf"


def test_a_call_that_raises_has_no_other_side():
    told: list[object] = []
    shelf = with_faults(Shelf(told), Told(told), STEPS)
    with pytest.raises(OSError, match="too heavy"):
        asyncio.run(shelf.put("too heavy"))
    assert told == [(Step.O6_PUT, Side.BEFORE), "too heavy"]


@pytest.mark.filterwarnings("error")
def test_nothing_is_called_where_the_instance_ends_before():
    told: list[object] = []
    shelf = with_faults(Shelf(told), Told(told, ends_at=(Step.O6_PUT, Side.BEFORE)), STEPS)
    with pytest.raises(ConnectionError):
        asyncio.run(shelf.put("a book"))
    assert told == [(Step.O6_PUT, Side.BEFORE)]


def test_entering_is_the_step_of_what_is_entered():
    told: list[object] = []
    shelf = with_faults(Shelf(told), Told(told), STEPS)

    async def hold() -> None:
        async with shelf.lock(wait=True) as state:
            told.append(state)

    asyncio.run(hold())
    before, after = (Step.O1_LOCK, Side.BEFORE), (Step.O1_LOCK, Side.AFTER)
    assert told == [before, "locked wait=True", after, "locked", "released"]


def test_an_instance_that_ends_once_it_is_entered_leaves_again():
    told: list[object] = []
    shelf = with_faults(Shelf(told), Told(told, ends_at=(Step.O1_LOCK, Side.AFTER)), STEPS)

    async def hold() -> None:
        async with shelf.lock(wait=False):
            told.append("held")

    with pytest.raises(ConnectionError):
        asyncio.run(hold())
    assert told == [(Step.O1_LOCK, Side.BEFORE), "locked wait=False", (Step.O1_LOCK, Side.AFTER)]
