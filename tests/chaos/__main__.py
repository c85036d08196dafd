"""`make chaos`: runs under faults, a report, and 1 as exit code where anything is wrong.

`python -m tests.chaos [--quick | --release] [--scale 0.1] [--only k1,k2,...] [--seed N]`
"""

import argparse
import asyncio
import sys
import time

from tests.chaos import failing_over, scenarios
from tests.chaos.disks import NoDisks

RUNS = {
    "k1": scenarios.k1,
    "k2": scenarios.k2,
    "k3": scenarios.k3,
    "k4": scenarios.k4,
    "k5": failing_over.k5,
    "k6": scenarios.k6,
    "stops": scenarios.stops,
    "full-disk": scenarios.full_disk,
    "k13": scenarios.k13,
}
OF_QUICK = ("k1", "k2", "k4", "k5", "k6", "stops", "full-disk")
ONLY_OF_RELEASE = ("k13",)


def _names(asked: argparse.Namespace) -> tuple[str, ...]:
    if asked.quick:
        return OF_QUICK
    return tuple(name for name in RUNS if asked.release or name not in ONLY_OF_RELEASE)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--quick", action="store_true", help="about a minute")
    sizes.add_argument(
        "--release", action="store_true", help="the sizes of before a release: hours"
    )
    parser.add_argument("--scale", type=float, default=1.0, help="of the full sizes")
    parser.add_argument("--only", help="of: " + ", ".join(RUNS))
    parser.add_argument("--seed", type=int, default=int(time.time()) % 100_000)
    asked = parser.parse_args()
    whole = scenarios.RELEASE if asked.release else scenarios.FULL
    size = scenarios.QUICK if asked.quick else whole.scaled(asked.scale)
    names = asked.only.split(",") if asked.only else _names(asked)
    print(f"chaos: {', '.join(names)}; --seed {asked.seed} repeats its choices", flush=True)
    good = True
    for name in names:
        try:
            outcome = asyncio.run(RUNS[name](size, asked.seed))
        except NoDisks as why:
            print(f"{name}: not run: {why}", flush=True)
            continue
        print(outcome.report(), flush=True)
        good = good and outcome.good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
