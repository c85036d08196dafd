"""`python -m tests.simulation.first_seeds [--most N] [MEND ...]`

Prints, for each mend, the first seed whose world fails without it and holds with it: of the worlds
that are drawn, and of those that are aimed at it. It is how the seeds of `test_mutations.py` and
the table of docs/faults.md are found again, once a change of the service has moved them.
"""

import argparse
from collections.abc import Callable

from tests.simulation.judging.mutations import MUTATIONS, without
from tests.simulation.worlds.aimed import AIMED
from tests.simulation.worlds.plan import draw
from tests.simulation.worlds.world import World

MOST = 6_000
"""So many seeds are tried."""


def first(name: str, make: Callable[[int], World], most: int) -> int | None:
    for seed in range(most):
        with without(name):
            broken = make(seed).run().violations
        if broken and not make(seed).run().violations:
            return seed
    return None


def drawn(seed: int) -> World:
    return World(draw(seed))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.first_seeds")
    parser.add_argument("--most", type=int, default=MOST, help="how many seeds are tried")
    parser.add_argument("mends", nargs="*", metavar="MEND", default=sorted(MUTATIONS))
    asked = parser.parse_args()
    if unknown := set(asked.mends) - set(MUTATIONS):
        parser.error(f"expected some of {sorted(MUTATIONS)}, found {sorted(unknown)}")
    for name in asked.mends:
        aimed = first(name, AIMED[name], asked.most) if name in AIMED else "-"
        print(f"{name}: drawn {first(name, drawn, asked.most)}, aimed {aimed}", flush=True)


if __name__ == "__main__":
    main()
