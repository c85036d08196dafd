"""Worlds that are drawn for one trouble: a rare one takes thousands of those of `plan.draw`."""

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from tests.simulation.ports.network import CALM, UNSTEADY
from tests.simulation.ports.store import StoreFaults
from tests.simulation.ports.unit import DatabaseFaults
from tests.simulation.worlds.plan import Deed, Kind, Plan, Task
from tests.simulation.worlds.world import World

LATE = StoreFaults(puts=(0.4, 0.0, 0.0, 0.2, 0.4))
APPENDING = Task(kinds=(Kind.APPEND,), asks_again=True)


def _plan(seed: int, *tasks: Task) -> Plan:
    return Plan(seed=seed, catalog_managed=False, tasks=tasks, temper=UNSTEADY)


def _deeds(seed: int, *deeds: Deed, most: int) -> tuple[tuple[int, Deed], ...]:
    dice = random.Random(seed)
    steps = sorted(dice.randrange(1, most) for _ in deeds)
    return tuple(zip(steps, deeds, strict=True))


def created_over(seed: int) -> World:
    """A table is forgotten whose log was cleaned up, and created there again."""
    deeds = _deeds(seed, Deed.FOREIGN, Deed.CLEAN_UP, Deed.FORGET, Deed.CREATE, most=60)
    return World(replace(_plan(seed, APPENDING), deeds=deeds))


def buffered(seed: int) -> World:
    """Of two proposals that wait together the one makes the other valid; the PUT of the first is
    slow, and the instance has lost its session, when another instance is asked for the second."""
    tasks = (
        Task(kinds=(Kind.NULL,), starts_s=0.006),
        Task(kinds=(Kind.APPEND,)),
        Task(kinds=(Kind.NULLABLE,)),
        Task(kinds=(Kind.NULL,), shares=0, starts_s=0.05),
    )
    deeds = ((26 + seed % 6, Deed.END_SESSIONS),)
    plan = replace(_plan(seed, *tasks), deeds=deeds, temper=CALM)
    return World(plan, {"client3.instance:0": 1, f"i0.put:{3 + seed % 2}": 3})


def too_old(seed: int) -> World:
    """A PUT is late, the log is cleaned up, and the index made anew."""
    tasks = (
        Task(kinds=(Kind.SUMMARY,), asks_again=True),
        Task(kinds=(Kind.REGISTER,), asks_again=True),
    )
    deeds = _deeds(seed, Deed.FOREIGN, Deed.CLEAN_UP, Deed.REBUILD, most=70)
    return World(replace(_plan(seed, *tasks), deeds=deeds, store=LATE))


def gone(seed: int) -> World:
    """A table is forgotten while a COMMIT has no answer."""
    commits = DatabaseFaults(commits=(0.5, 0.5))
    tasks = (Task(kinds=(Kind.APPEND,)),) * 3
    plan = replace(_plan(seed, *tasks), database=commits, temper=CALM)
    deeds = _deeds(seed, Deed.FORGET, most=40)
    return World(replace(plan, catalog_managed=seed % 2 == 0, deeds=deeds))


def made_again(seed: int) -> World:
    """A PUT is late until its table is forgotten, its folder deleted, and another one made."""
    deeds = _deeds(seed, Deed.FORGET, Deed.DELETE, Deed.CREATE, most=90)
    tasks = (APPENDING, Task(kinds=(Kind.APPEND, Kind.APPEND)))
    return World(replace(_plan(seed, *tasks), deeds=deeds, store=LATE))


def hidden(seed: int) -> World:
    """Others write past the service, and clean up behind that when it is old enough."""
    tasks = (Task(kinds=(Kind.APPEND,), starts_s=905.0), Task(kinds=(Kind.APPEND,), starts_s=950.0))
    deeds = ((1, Deed.FOREIGN_MANY), (random.Random(seed).randrange(2, 5), Deed.CLEAN_UP))
    return World(replace(_plan(seed, *tasks), deeds=deeds))


def replaced(seed: int) -> World:
    """A table is forgotten, its folder deleted and another one made there; then the database goes
    back to before that, in every other world to before anything was published."""
    starts_s = (915.0, 925.0, 945.0)
    tasks = (APPENDING, *(Task(kinds=(Kind.APPEND,), starts_s=start_s) for start_s in starts_s))
    # The ids of a world of seed 0 are those of the table that all begin with.
    world = World(replace(_plan(seed + 1, *tasks), catalog_managed=True))
    back_s = random.Random(seed).choice((912.0, 916.0, 935.0))
    deeds = (
        (5.0, Deed.FORGET),
        (20.0, Deed.DELETE),
        (910.0, Deed.CREATE),
        (back_s, Deed.BRING_BACK),
    )
    for at_s, deed in deeds:
        world.scheduler.after(at_s, partial(world.deeds.do, deed))
    world.deeds.back_up(unpublished=bool(seed % 2))
    return world


AIMED: Mapping[str, Callable[[int], World]] = {
    "looks-before-creation": created_over,
    "fenced-422": buffered,
    "fenced-too-old": too_old,
    "404-of-one-attempt": gone,
    "settled-places": made_again,
    "hidden-logs": hidden,
    "own-logs": replaced,
    "gaps": hidden,
}
"""By the mend that each is about (`mutations.py`)."""
