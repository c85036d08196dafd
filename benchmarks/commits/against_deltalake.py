"""What B2 and B3 share: appends by the service, in turns with appends by `deltalake`."""

from collections.abc import Mapping

from benchmarks.frame import Floor, Result, Scale
from benchmarks.load import loading
from benchmarks.load.plan import Kind
from benchmarks.rig.world import World
from benchmarks.rivals.deltalake_writers import rivals


def appends(
    world: World, scale: Scale, floors: Mapping[int, Floor | None], *, catalog_managed: bool
) -> Result:
    """A figure for each number of writers; theirs are processes, ours are connections."""
    seconds = scale.pick(quick=1.5, full=10.0)
    figures, failures = [], 0
    for writers, floor in floors.items():
        turns = []
        with rivals(world, writers=writers) as others:
            for _ in range(scale.runs):
                rate = others.rate(kind=Kind.APPEND, seconds=seconds)
                failures += rate.failures
                table = world.service.create_table(catalog_managed=catalog_managed)
                load = loading.appends(
                    world, world.service, [table], writers=writers, seconds=seconds
                )
                turns.append((load, rate.commits_per_second))
        figures.append(
            loading.figure(turns, name=f"{writers} writers", floor=floor, at=float(writers))
        )
    return Result(
        figures=tuple(figures),
        notes=(
            f"{failures} calls of `deltalake` failed for good, after its own retries; of the "
            "service's none.",
        ),
    )
