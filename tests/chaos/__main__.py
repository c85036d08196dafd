"""`make chaos`: runs under faults, a report, and 1 as exit code where anything is wrong.

`python -m tests.chaos [--quick] [--scale 0.1] [--only k1,k2,...] [--seed N]`
"""

import argparse
import asyncio
import sys
import time

from tests.chaos import scenarios

RUNS = {
    "k1": scenarios.k1,
    "k2": scenarios.k2,
    "k3": scenarios.k3,
    "k4": scenarios.k4,
    "k6": scenarios.k6,
    "stops": scenarios.stops,
}
OF_QUICK = ("k1", "k2", "k4", "k6", "stops")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("--quick", action="store_true", help="about a minute")
    parser.add_argument("--scale", type=float, default=1.0, help="of the full sizes")
    parser.add_argument("--only", help="of: " + ", ".join(RUNS))
    parser.add_argument("--seed", type=int, default=int(time.time()) % 100_000)
    asked = parser.parse_args()
    size = scenarios.QUICK if asked.quick else scenarios.FULL.scaled(asked.scale)
    names = asked.only.split(",") if asked.only else OF_QUICK if asked.quick else RUNS
    print(f"chaos: {', '.join(names)}; --seed {asked.seed} repeats its choices", flush=True)
    good = True
    for name in names:
        outcome = asyncio.run(RUNS[name](size, asked.seed))
        print(outcome.report(), flush=True)
        good = good and outcome.good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
