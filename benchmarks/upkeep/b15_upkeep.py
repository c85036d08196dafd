"""B15: what upkeep takes from the commits of a hot table."""

from benchmarks.frame import Bench, Result, Scale, at_least
from benchmarks.load import loading
from benchmarks.load.loading import Load
from benchmarks.rig.service import Service
from benchmarks.rig.world import World

_FLOOR = at_least(0.9)
_WRITERS = 32


def run(world: World, scale: Scale) -> Result:
    seconds = scale.pick(quick=2.0, full=30.0)
    turns: list[tuple[Load, float]] = []
    with world.serving() as kept_up, world.serving("--upkeep-share=0") as left_alone:
        for turn in range(scale.runs):
            first, second = (kept_up, left_alone) if turn % 2 else (left_alone, kept_up)
            loads = {each: _loaded(world, each, seconds) for each in (first, second)}
            turns.append((loads[kept_up], loads[left_alone].commits_per_second))
    figure = loading.figure(turns, name=f"{_WRITERS} writers", floor=_FLOOR)
    note = (
        f"{seconds:g} s each, on a new table each time, on an instance and a database of its own: "
        "one with the default settings, one with `upkeep_share = 0`. Publishing goes on in both. "
        "Which of them comes first changes from turn to turn."
    )
    return Result(figures=(figure,), notes=(note,))


def _loaded(world: World, service: Service, seconds: float) -> Load:
    table = service.create_table(catalog_managed=True)
    return loading.appends(world, service, [table], writers=_WRITERS, seconds=seconds)


BENCH = Bench(
    id="b15",
    title="commits beside upkeep",
    measured="commits/s of B1 at 32 writers with checkpoints, checksums, compaction and clean-up",
    against="the same with upkeep switched off",
    run=run,
)
