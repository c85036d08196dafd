"""`make bench`: runs benches, keeps what they found, writes the report.

`python -m benchmarks [--quick] [--only b1,b3] [--runs 5] [--seed 7] [--held 600]
[--disk FOLDER]`
"""

import argparse
import sys
import time
import traceback
from pathlib import Path

from benchmarks import registry
from benchmarks.frame import Bench, Scale
from benchmarks.reporting import kept, report
from benchmarks.rig.world import World, scratch, standing

HERE = Path(__file__).parent
RUNS = 5
RUNS_OF_QUICK = 2


def main() -> int:
    asked = _arguments()
    scale = Scale(
        quick=asked.quick,
        runs=asked.runs or (RUNS_OF_QUICK if asked.quick else RUNS),
        seed=asked.seed,
        held_s=asked.held,
    )
    out = HERE.parent / ".bench" if asked.quick else HERE
    benches = registry.load(asked.only)
    with scratch(asked.disk) as folder:
        # A world each: nothing that one bench leaves behind slows the next one. To make one
        # takes seconds, which a quick run does without.
        worlds = [benches] if asked.quick else [[bench] for bench in benches]
        broken = []
        for together in worlds:
            with standing(folder) as world:
                broken += [each.id for each in together if not _run(each, world, scale, out)]
    report.write(out, kept.kept_in(out / "results"))
    print(f"the report is {out.relative_to(HERE.parent) / 'report.md'}")
    if broken:
        print(f"broken: {', '.join(broken)}", file=sys.stderr)
    return 1 if broken else 0


def _run(bench: Bench, world: World, scale: Scale, out: Path) -> bool:
    """Whether it ran to its end; the others are run whatever happens to this one."""
    print(f"{bench.id}: {bench.title}", flush=True)
    started = time.monotonic()
    try:
        result = bench.run(world, scale)
    except Exception:
        traceback.print_exc()
        return False
    found = kept.of_run(
        bench,
        result,
        seconds=time.monotonic() - started,
        quick=scale.quick,
        runs=scale.runs,
        seed=scale.seed,
        disk=world.folder,
    )
    kept.keep(out / "results", found)
    print(report.summary(found), flush=True)
    return True


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench ARGS=...")
    parser.add_argument("--quick", action="store_true", help="all of it within five minutes")
    parser.add_argument(
        "--only", type=_ids, default=list(registry.MODULES), metavar="b1,b3", help="not all"
    )
    parser.add_argument("--runs", type=int, help="turns of each figure")
    parser.add_argument("--seed", type=int, default=4, help="of what is drawn by chance")
    parser.add_argument(
        "--held", type=float, metavar="SECONDS", help="how long B27 loads the service"
    )
    parser.add_argument("--disk", type=Path, help="a folder on the disk to measure on")
    return parser.parse_args()


def _ids(text: str) -> list[str]:
    ids = text.split(",")
    unknown = [name for name in ids if name not in registry.MODULES]
    if unknown:
        known = ", ".join(registry.MODULES)
        raise argparse.ArgumentTypeError(f"expected some of {known}; found {', '.join(unknown)}")
    return ids


if __name__ == "__main__":
    sys.exit(main())
