"""B11: many catalog-managed tables at once, against pgbench committing to as many rows."""

from benchmarks.frame import Bench, Result, Scale, at_least
from benchmarks.load import loading
from benchmarks.rig.world import World
from benchmarks.rivals import pgbench

TABLES = 64


def run(world: World, scale: Scale) -> Result:
    rival = pgbench.pgbench_in(world, rows=TABLES)
    service = world.service
    seconds = scale.pick(quick=1, full=5)
    tables = [service.create_table(catalog_managed=True) for _ in range(TABLES)]
    turns = []
    for _ in range(scale.runs):
        against = rival.rate(clients=TABLES, rows=TABLES, seconds=seconds)
        load = loading.appends(world, service, tables, writers=TABLES, seconds=seconds)
        turns.append((load, against))
    figure = loading.figure(
        turns, name=f"{TABLES} writers, {TABLES} tables", floor=at_least(0.5), at=TABLES
    )
    return Result(figures=(figure,))


BENCH = Bench(
    id="b11",
    title="many tables at once",
    measured=f"commits/s over HTTP, {TABLES} writers, each appending to a catalog-managed table of "
    "its own",
    against=f"pgbench moving the versions of {TABLES} rows on and inserting 1 KB, each of "
    f"{TABLES} clients its own row, on the same Postgres",
    run=run,
)
