"""Many worlds, on all cores: how many there were, and the first of each way to fail."""

import gc
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from tests.simulation.judging.mutations import without
from tests.simulation.shrink import signature
from tests.simulation.worlds.plan import Plan, draw
from tests.simulation.worlds.world import World

COLLECTED_EVERY = 500
"""Worlds leave circles of references behind; looking for them after each would cost more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """`seeds` worlds from `first` on at most, and no new one after `seconds`; `mutation` names a
    mend that is switched off (`mutations.py`), `until_one` ends at the first that fails,
    `checks_early` is of each plan."""

    first: int
    seeds: int | None = None
    seconds: float | None = None
    mutation: str | None = None
    until_one: bool = False
    checks_early: bool = False


@dataclass(slots=True)
class Findings:
    """`failing` are the seeds that failed, by what was wrong with them."""

    worlds: int = 0
    seconds: float = 0.0
    cpu_s: float = 0.0
    steps: int = 0
    acked: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    failing: dict[str, list[int]] = field(default_factory=dict)

    def add(self, other: "Findings") -> None:
        self.worlds += other.worlds
        self.seconds = max(self.seconds, other.seconds)
        self.cpu_s += other.cpu_s
        self.steps += other.steps
        self.acked += other.acked
        self.answers += other.answers
        for what, seeds in other.failing.items():
            self.failing.setdefault(what, []).extend(seeds)

    @property
    def seeds(self) -> list[int]:
        """Those that failed."""
        return sorted({seed for seeds in self.failing.values() for seed in seeds})

    def report(self) -> str:
        kinds = ", ".join(f"{name} {count}" for name, count in self.answers.most_common(8))
        return (
            f"simulation: {self.worlds} worlds in {self.seconds:.0f} s, "
            f"{self.worlds / max(self.seconds, 1e-9):.0f} a second "
            f"({self.worlds / max(self.cpu_s, 1e-9):.0f} a second of a core's own time)\n"
            f"  {self.steps} events, {self.acked} acks; answers: {kinds}\n"
            f"  failing worlds: {len(self.seeds)}"
        )


def run(asked: Asked, *, processes: int | None = None) -> Findings:
    """Run them, each process every so-manieth seed."""
    count = processes or multiprocessing.cpu_count()
    found = Findings()
    if count == 1:
        return _run(asked, 0, 1)
    with multiprocessing.get_context("spawn").Pool(count) as pool:
        shares = [(asked, number, count) for number in range(count)]
        for share in pool.starmap(_run, shares):
            found.add(share)
    return found


def _run(asked: Asked, share: int, shares: int) -> Findings:
    with without(asked.mutation):
        found = Findings()
        # What all worlds share is made, and never looked at again by the collector.
        for seed in (0, 1, 2, 3):
            World(draw(seed)).run()
        gc.collect()
        gc.freeze()
        gc.disable()
        # What worlds that have ended leave half done is nobody's any more.
        hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
        try:
            for seed in _seeds(asked, share, shares):
                _one(found, replace(draw(seed), checks_early=asked.checks_early))
                if asked.until_one and found.failing:
                    break
        finally:
            gc.collect()
            sys.unraisablehook = hook
            gc.enable()
        return found


def _seeds(asked: Asked, share: int, shares: int) -> Iterator[int]:
    began = time.monotonic()
    seed = asked.first + share
    while asked.seeds is None or seed < asked.first + asked.seeds:
        if asked.seconds is not None and time.monotonic() - began >= asked.seconds:
            return
        yield seed
        seed += shares


def _one(found: Findings, plan: Plan) -> None:
    began, cpu = time.monotonic(), time.process_time()
    try:
        result = World(plan).run()
    except Exception as error:
        error.add_note(f"the world of seed {plan.seed} came to no end")
        raise
    found.worlds += 1
    found.steps += result.steps
    found.acked += result.acked
    found.answers.update(result.answers)
    for violation in result.violations:
        seeds = found.failing.setdefault(signature(violation), [])
        if not seeds or seeds[-1] != plan.seed:
            seeds.append(plan.seed)
    if found.worlds % COLLECTED_EVERY == 0:
        gc.collect()
    found.seconds += time.monotonic() - began
    found.cpu_s += time.process_time() - cpu


def firsts(found: Findings, most: int) -> Sequence[tuple[int, str]]:
    """The first seed of each way to fail, the likeliest first."""
    ways = sorted(found.failing.items(), key=lambda item: -len(item[1]))
    chosen: dict[int, str] = {}
    for what, seeds in ways:
        if not chosen.keys() & set(seeds):
            chosen[min(seeds)] = what
    return list(chosen.items())[:most]
