"""B3: a plain table of local files, against writers that commit with `deltalake`."""

from benchmarks.commits import against_deltalake
from benchmarks.frame import Bench, Result, Scale, at_least
from benchmarks.rig.world import World

FLOORS = {8: at_least(40), 32: at_least(40)}


def run(world: World, scale: Scale) -> Result:
    return against_deltalake.appends(world, scale, FLOORS, catalog_managed=False)


BENCH = Bench(
    id="b3",
    title="one plain table, against writers without a coordinator",
    measured="commits/s over HTTP, blind appends of one file, on one plain table whose log files "
    "are synced to the disk before each answer",
    against="`deltalake` committing the same action, without data files and without syncing "
    "anything, from as many processes to one table on the same disk",
    run=run,
)
