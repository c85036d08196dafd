"""Making a failing world smaller, as long as it still fails in the same way.

First what is whole: deeds, clients, kinds of faults. Then the choices of chance, many at a time and
then one by one: each that is left out is at its default then, the dullest one.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tests.chaos.judging.violations import Violation
from tests.simulation.ports.network import CALM
from tests.simulation.ports.store import NO_STORE_FAULTS
from tests.simulation.ports.unit import NO_DATABASE_FAULTS
from tests.simulation.worlds.choices import Deviations
from tests.simulation.worlds.plan import MOST_STEPS, Plan
from tests.simulation.worlds.world import Result, World

MOST_RUNS = 2_000


@dataclass(frozen=True, slots=True)
class Failing:
    """A world that fails, and what is wrong with it."""

    plan: Plan
    deviations: Deviations
    result: Result

    @property
    def signatures(self) -> frozenset[str]:
        return frozenset(signature(violation) for violation in self.result.violations)


def signature(violation: Violation) -> str:
    """What is wrong, without the numbers and ids that another world has otherwise."""
    return f"{violation.kind.name} {re.sub('[0-9]+', '#', violation.detail)}"


def shrink(plan: Plan, result: Result, what: str | None = None) -> Failing:
    """The smallest world that this comes to by leaving out one thing after another. With `what`, a
    signature, it goes on to fail by that; else by any that the world has."""
    runs = 0

    def fails(plan: Plan, deviations: Deviations) -> Failing | None:
        nonlocal runs
        runs += 1
        made = World(plan, deviations).run()
        failing = Failing(plan, deviations, made)
        # One that fails otherwise is another one.
        wanted = found.signatures if what is None else {what}
        return None if wanted.isdisjoint(failing.signatures) else failing

    found = Failing(plan, result.deviations, result)
    again = fails(plan, result.deviations)
    if again is None:
        raise AssertionError(f"seed {plan.seed} does not repeat itself")
    found = again
    is_smaller = True
    while is_smaller and runs < MOST_RUNS:
        is_smaller = False
        for smaller in _smaller_plans(found.plan):
            made = fails(smaller, found.deviations)
            if made is not None:
                found, is_smaller = made, True
                break
        else:
            fewer = _fewer(found, fails)
            is_smaller = len(fewer.deviations) < len(found.deviations)
            found = fewer
    return found


def _smaller_plans(plan: Plan) -> Iterator[Plan]:
    for at in range(len(plan.deeds)):
        yield plan.without_deed(at)
    if len(plan.tasks) > 1:
        for at in reversed(range(len(plan.tasks))):
            yield plan.without_task(at)
    for at, task in enumerate(plan.tasks):
        if len(task.kinds) > 1:
            for left in (task.kinds[:1], task.kinds[1:]):
                yield _with_task(plan, at, kinds=left)
        if task.aborts:
            yield _with_task(plan, at, aborts=False)
        if task.asks_again:
            yield _with_task(plan, at, asks_again=False)
        if task.starts_s:
            yield _with_task(plan, at, starts_s=0.0)
    if plan.database is not NO_DATABASE_FAULTS:
        yield replace(plan, database=NO_DATABASE_FAULTS)
    if plan.store is not NO_STORE_FAULTS:
        yield replace(plan, store=NO_STORE_FAULTS)
    if plan.lost_answers:
        yield replace(plan, lost_answers=0.0)
    if plan.gateway:
        yield replace(plan, gateway=0.0)
    if plan.unsynced:
        yield replace(plan, unsynced=0.0)
    if plan.temper is not CALM:
        yield replace(plan, temper=CALM)
    if plan.instances > 1:
        yield replace(plan, instances=plan.instances - 1)
    for at, (step, deed) in enumerate(plan.deeds):
        for earlier in {1, step // 2}:
            if earlier < step <= MOST_STEPS:
                moved = (*plan.deeds[:at], (earlier, deed), *plan.deeds[at + 1 :])
                yield replace(plan, deeds=tuple(sorted(moved, key=lambda one: one[0])))


def _with_task(plan: Plan, at: int, **fields: object) -> Plan:
    tasks = list(plan.tasks)
    tasks[at] = replace(tasks[at], **fields)  # type: ignore[arg-type]
    return replace(plan, tasks=tuple(tasks))


def _fewer(found: Failing, fails: Callable[[Plan, Deviations], Failing | None]) -> Failing:
    """Leave out deviations, halves of them first."""
    size = max(1, len(found.deviations) // 2)
    while True:
        places = list(found.deviations)
        for start in range(0, len(places), size):
            without = set(places[start : start + size])
            left = {at: pick for at, pick in found.deviations.items() if at not in without}
            if len(left) < len(found.deviations):
                made = fails(found.plan, left)
                if made is not None:
                    found = made
        if size == 1:
            return found
        size //= 2
