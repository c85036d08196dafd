"""B1: one catalog-managed table, against pgbench committing to one row of the same Postgres."""

from benchmarks import loading, pgbench
from benchmarks.frame import Bench, Figure, Pair, Result, Scale, at_least
from benchmarks.world import World

ENOUGH, TOO_MANY = 128, 400
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
    figures.append(_saturated(world, scale, seconds))
    return Result(
        figures=tuple(figures),
        notes=(
            "Postgres runs with what the service demands of it: "
            f"{pgbench.settings(world)}. pgbench's commit is one prepared statement, the fastest "
            "way to write it; the service's publisher runs meanwhile, as in production.",
        ),
    )


def _saturated(world: World, scale: Scale, seconds: float) -> Figure:
    """Whether more writers than there is work for them slow each other down."""
    rates = []
    for _ in range(scale.runs):
        rate = {}
        for writers in (ENOUGH, TOO_MANY):
            table = world.service.create_table(catalog_managed=True)
            load = loading.appends(world, world.service, [table], writers=writers, seconds=seconds)
            rate[writers] = load.commits_per_second
        rates.append(Pair(measured=rate[TOO_MANY], against=rate[ENOUGH]))
    return Figure(
        name=f"{TOO_MANY} writers, against the service's own {ENOUGH}",
        unit="commits/s",
        pairs=tuple(rates),
        floor=at_least(0.8),
    )


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
