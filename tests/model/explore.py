"""Breadth-first exploration of a model: every state that any order of steps can reach.

States are small tuples. The first step found that breaks a promise ends the exploration, and since
states are visited in the order of their distance, the steps that lead there are as few as possible.
"""

from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol


class Step(NamedTuple):
    """One step of a schedule (docs/development.md, "The model").

    `what` is the name of an action, `instance` who does it (None: nobody of ours), `on` what it is
    done to, `came` what came of it where that is not settled by the steps before.
    """

    what: str
    instance: int | None = None
    on: tuple[str, ...] = ()
    came: str = ""

    def __str__(self) -> str:
        who = "" if self.instance is None else f"instance {self.instance}: "
        on = f" {', '.join(self.on)}" if self.on else ""
        return f"{who}{self.what}{on}" + (f" -> {self.came}" if self.came else "")


RawStep = tuple[str, int | None, tuple[int, ...], str]
"""A step as a model makes it, without names: most are never told."""
Next = tuple[RawStep, Hashable, str | None]
"""A step and the state that it leads to, or the promise that it breaks."""


class Model(Protocol):
    """What is explored. States that `canonical` makes equal are one: they differ in nothing but
    which of two equal instances is which."""

    def initial(self) -> Hashable:
        """The state that everything begins with."""
        ...

    def steps(self, state: Hashable) -> Iterable[Next]:
        """Every step that can be done in a state; always in the same order."""
        ...

    def named(self, step: RawStep) -> Step:
        """The step as it is told."""
        ...

    def canonical(self, state: Hashable) -> Hashable:
        """The one of the states that are the same as this one."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Explored:
    """What there was. `schedule` breaks a promise, and `broken` says which; both are empty where
    every reachable state was visited. `is_whole` is False where the bound on states ended it."""

    states: int
    steps: int
    depth: int
    schedule: tuple[Step, ...] = ()
    broken: str = ""
    is_whole: bool = True

    def told(self) -> str:
        """The counter-example, a step a line."""
        lines = [f"{number:3}. {step}" for number, step in enumerate(self.schedule, start=1)]
        return "\n".join([*lines, f"     {self.broken}"])


def explore(model: Model, *, most: int = 20_000_000) -> Explored:
    """Visit every state of a model, or `most` of them."""
    canonical = model.canonical
    first = canonical(model.initial())
    came_from: dict[Hashable, Hashable] = {first: None}
    waiting = deque([first])
    done = depth = 0
    last_of_depth: Hashable = first
    while waiting:
        state = waiting.popleft()
        for _, found, broken in model.steps(state):
            done += 1
            if broken is not None:
                way, at = _way(model, came_from, state)
                # By the numbers that the instances have had all the way.
                last, _, why = next(each for each in model.steps(at) if each[2] is not None)
                return Explored(
                    states=len(came_from),
                    steps=done,
                    depth=len(way) + 1,
                    schedule=(*way, model.named(last)),
                    broken=why or "",
                )
            after = canonical(found)
            if after not in came_from:
                came_from[after] = state
                waiting.append(after)
        if len(came_from) > most:
            return Explored(states=len(came_from), steps=done, depth=depth, is_whole=False)
        if state == last_of_depth and waiting:
            depth += 1
            last_of_depth = waiting[-1]
    return Explored(states=len(came_from), steps=done, depth=depth)


def _way(
    model: Model, came_from: dict[Hashable, Hashable], state: Hashable
) -> tuple[tuple[Step, ...], Hashable]:
    """The steps from the first state to this one, each instance under one number all the way, and
    the state that they lead to."""
    states = [state]
    while (before := came_from[states[-1]]) is not None:
        states.append(before)
    at = model.initial()
    way: list[Step] = []
    for aim in reversed(states[:-1]):
        step, at = next(
            (step, after)
            for step, after, broken in model.steps(at)
            if broken is None and model.canonical(after) == aim
        )
        way.append(model.named(step))
    return tuple(way), at
