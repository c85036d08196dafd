"""B26: commits by Unity Catalog's API, beside pgbench and beside Unity Catalog's own server."""

from benchmarks.frame import Bench, Figure, Limit, Pair, Result, Scale, at_least
from benchmarks.load.stock_writers import StockLoad, stock_appends, stock_table
from benchmarks.rig.world import World
from benchmarks.rivals import pgbench

WRITERS = (1, 8, 32)
OF_UNITY_CATALOG = {1: 281.0, 8: 109.0, 32: 31.0}
"""Commits a second of Unity Catalog 0.6.0 with one table on Postgres 15, on two cores, the load
included; measured on 2026-11-22, the better of two runs."""
TIMES = {1: 2.0, 8: 5.0, 32: 10.0}
"""How much more it has to be."""


def run(world: World, scale: Scale) -> Result:
    rival = pgbench.pgbench_in(world, rows=1)
    seconds = scale.pick(quick=1, full=5)
    figures, limits, told = [], [], list[StockLoad]()
    for writers in WRITERS:
        pairs, rates = [], []
        for _ in range(scale.runs):
            against = rival.rate(clients=writers, rows=1, seconds=seconds)
            table = stock_table(world.service)
            load = stock_appends(world.service, table, writers=writers, seconds=float(seconds))
            told.append(load)
            rates.append(load.commits_per_second)
            pairs.append(Pair(measured=rates[-1], against=against))
        name = "1 writer" if writers == 1 else f"{writers} writers"
        figures.append(Figure(name=name, unit="commits/s", pairs=tuple(pairs), at=float(writers)))
        wanted = TIMES[writers] * OF_UNITY_CATALOG[writers]
        limits.append(
            Limit(
                name=f"{name}, {TIMES[writers]:g} times what Unity Catalog's server does",
                unit="commits/s",
                values=tuple(rates),
                floor=at_least(wanted),
            )
        )
    commits, conflicts = (
        sum(getattr(each, it) for each in told) for it in ("commits", "conflicts")
    )
    return Result(
        figures=tuple(figures),
        limits=tuple(limits),
        notes=(
            f"{commits:,} commits landed, {conflicts:,} found their version taken (409) and were "
            "staged anew at once. Every other answer would have ended the bench.",
        ),
    )


BENCH = Bench(
    id="b26",
    title="commits of stock engines",
    measured="commits/s by Unity Catalog's API on one catalog-managed table: a staged file, the "
    "request for its version, and a load where it was taken",
    against="pgbench moving one row's version on and inserting 1 KB, at as many clients, on the "
    "same Postgres",
    run=run,
)
