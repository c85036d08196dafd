"""B5: writers that read and overwrite partitions of one table, against the same by `deltalake`."""

from benchmarks.frame import Bench, Limit, Result, Scale, at_least, at_most
from benchmarks.load import loading
from benchmarks.load.plan import Kind
from benchmarks.rig.world import World
from benchmarks.rivals.deltalake_writers import rivals

WRITERS = 16


def run(world: World, scale: Scale) -> Result:
    seconds = scale.pick(quick=1.5, full=10.0)
    turns, failures = [], 0
    with rivals(world, writers=WRITERS) as others:
        for _ in range(scale.runs):
            rate = others.rate(kind=Kind.OVERWRITE, seconds=seconds)
            failures += rate.failures
            table = world.service.create_table(catalog_managed=True, partition_columns=("p",))
            load = loading.overwrites(world, world.service, table, writers=WRITERS, seconds=seconds)
            turns.append((load, rate.commits_per_second))
    told = [load.told for load, _ in turns]
    return Result(
        figures=(loading.figure(turns, name=f"{WRITERS} writers", floor=at_least(40), at=WRITERS),),
        limits=(
            Limit(
                name="HTTP calls a commit, conflicts and refusals included",
                unit="calls",
                values=tuple(each.requests / each.commits for each in told),
                floor=at_most(1.0),
            ),
        ),
        notes=(
            f"Conflicts answered by the service: {sum(each.conflicts for each in told)}; calls of "
            f"`deltalake` that failed for good, after its own retries: {failures}. The partitions "
            "are disjoint, so there is nothing to conflict about.",
        ),
    )


BENCH = Bench(
    id="b5",
    title="contended read-modify-write",
    measured=f"commits/s over HTTP, {WRITERS} writers on one catalog-managed table; each reads and "
    "overwrites a partition of its own: a predicate read at its last commit, one file removed, one "
    "added",
    against="`deltalake` overwriting the same partitions from as many processes, without data "
    "files, on the same disk",
    run=run,
)
