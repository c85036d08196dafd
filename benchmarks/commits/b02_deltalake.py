"""B2: one catalog-managed table, against writers that commit with `deltalake`."""

from benchmarks.commits import against_deltalake
from benchmarks.frame import Bench, Result, Scale, at_least
from benchmarks.rig.world import World

FLOORS = {8: at_least(100), 32: None}


def run(world: World, scale: Scale) -> Result:
    return against_deltalake.appends(world, scale, FLOORS, catalog_managed=True)


BENCH = Bench(
    id="b2",
    title="one catalog-managed table, against writers without a coordinator",
    measured="commits/s over HTTP, blind appends of one file, on one table",
    against="`deltalake` committing the same action, without data files, from as many processes "
    "to one table on the same disk",
    run=run,
)
