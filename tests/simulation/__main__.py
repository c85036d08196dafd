"""`python -m tests.simulation [--seconds N | --seeds N] [--seed S] [--without MEND]`

Runs worlds from a seed on, and prints how many there were and what failed. The first of each way to
fail is made smaller and told as a story, with the command that repeats it; the exit code is 1 then.
`--seeds 1` tells of one world alone.
"""

import argparse
import sys
import time

from tests.simulation.judging.mutations import MUTATIONS, without
from tests.simulation.running import Asked, firsts, run
from tests.simulation.shrink import shrink
from tests.simulation.story import story
from tests.simulation.worlds.plan import draw
from tests.simulation.worlds.world import World

TOLD = 5


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1_000_000 * 1_000)
    parser.add_argument("--seeds", type=int, help="how many worlds")
    parser.add_argument("--seconds", type=float, help="for how long, unless --seeds says so")
    parser.add_argument("--without", choices=sorted(MUTATIONS), help="a mend to switch off")
    parser.add_argument("--until-one", action="store_true", help="end at the first that fails")
    parser.add_argument("--processes", type=int)
    parser.add_argument("--told", type=int, default=TOLD, help="how many failing worlds are told")
    asked = parser.parse_args()
    seconds = asked.seconds or (None if asked.seeds else 60.0)
    found = run(
        Asked(
            first=asked.seed,
            seeds=asked.seeds,
            seconds=seconds,
            mutation=asked.without,
            until_one=asked.until_one,
        ),
        processes=1 if asked.seeds == 1 else asked.processes,
    )
    print(f"{found.report()}\n  --seed {asked.seed} repeats the choices", flush=True)
    for what, seeds in sorted(found.failing.items(), key=lambda item: -len(item[1])):
        print(f"  {len(seeds)} times, first by {min(seeds)}: {what}")
    with without(asked.without):
        for seed, what in firsts(found, asked.told):
            plan = draw(seed)
            print(story(shrink(plan, World(plan).run(), what), mutation=asked.without), flush=True)
    return 1 if found.failing else 0


if __name__ == "__main__":
    sys.exit(main())
