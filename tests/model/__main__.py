"""Explore the models at length: `python -m tests.model` (part of `make chaos`). Ends with 1 where a
promise is broken, and prints the steps that break it."""

import sys
import time

from tests.model.cases import GREEN, LONG
from tests.model.explore import explore


def main() -> int:
    """Explore every case, each with its figures in a line."""
    states = 0
    for case in (*GREEN, *LONG):
        began = time.monotonic()
        found = explore(case.model())
        states += found.states
        took = time.monotonic() - began
        whole = "" if found.is_whole else ", not all of them"
        print(f"{case.name}: {found.states} states{whole}, {took:.0f} s", flush=True)
        if found.broken:
            print(found.told())
            return 1
    print(f"{states} states, no promise broken")
    return 0


if __name__ == "__main__":
    sys.exit(main())
