"""B1: one catalog-managed table, against pgbench committing to one row of the same Postgres."""

from benchmarks.frame import Bench, Figure, Pair, Result, Scale, at_least
from benchmarks.load import loading
from benchmarks.rig.world import World
from benchmarks.rivals import pgbench

ENOUGH = 128
TOO_MANY = (400, 1_000)
"""The first are more than there is work for, the second more than the table's queue takes."""
FLOORS = {1: None, 8: at_least(1.0), 32: at_least(3.0), 128: at_least(3.0)}


def run(world: World, scale: Scale) -> Result:
    rival = pgbench.pgbench_in(world, rows=1)
    service = world.service
    seconds = scale.pick(quick=1, full=5)
    figures = []
    for writers, floor in FLOORS.items():
        turns = []
        for _ in range(scale.runs):
            against = rival.rate(clients=writers, rows=1, seconds=seconds)
            table = service.create_table(catalog_managed=True)
            load = loading.appends(world, service, [table], writers=writers, seconds=seconds)
            turns.append((load, against))
        figures.append(
            loading.figure(turns, name=_writers(writers), floor=floor, at=float(writers))
        )
    refused = []
    for writers in TOO_MANY:
        saturated, turned_away = _saturated(world, scale, seconds, writers)
        figures.append(saturated)
        refused.append(f"{turned_away} with {writers:,}")
    return Result(
        figures=tuple(figures),
        notes=(
            "Postgres runs with what the service demands of it: "
            f"{pgbench.settings(world)}. pgbench's commit is one prepared statement, the fastest "
            "way to write it; the service's publisher runs meanwhile, as in production.",
            "Requests that were answered with a 429, and sent again after a second, over all runs: "
            f"{', '.join(refused)} writers.",
        ),
    )


def _saturated(world: World, scale: Scale, seconds: float, too_many: int) -> tuple[Figure, int]:
    """Whether more writers than there is work for them slow each other down; and how many
    requests were refused."""
    rates, refused = [], 0
    for _ in range(scale.runs):
        rate = {}
        for writers in (ENOUGH, too_many):
            table = world.service.create_table(catalog_managed=True)
            load = loading.appends(world, world.service, [table], writers=writers, seconds=seconds)
            rate[writers] = load.commits_per_second
            refused += load.told.refused
        rates.append(Pair(measured=rate[too_many], against=rate[ENOUGH]))
    figure = Figure(
        name=f"{too_many:,} writers, against the service's own {ENOUGH}",
        unit="commits/s",
        pairs=tuple(rates),
        floor=at_least(0.8),
    )
    return figure, refused


def _writers(number: int) -> str:
    return "1 writer" if number == 1 else f"{number} writers"


BENCH = Bench(
    id="b1",
    title="one catalog-managed table",
    measured="commits/s over HTTP, blind appends of one file, 1 to 128 writers on one table",
    against="pgbench moving one row's version on and inserting 1 KB, at as many clients, on the "
    "same Postgres",
    run=run,
)
