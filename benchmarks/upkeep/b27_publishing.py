"""B27: whether a hot table's log keeps up with its head for as long as the load lasts."""

from benchmarks.frame import Bench, Limit, Result, Scale, at_most
from benchmarks.load import loading
from benchmarks.rig.world import World
from benchmarks.upkeep.lag import watched

_WITHIN_S = at_most(10.0)
_NONE = at_most(0.0)
_WRITERS = 32


def run(world: World, scale: Scale) -> Result:
    seconds = scale.held_s or scale.pick(quick=3.0, full=60.0)
    lags, most, refused, rates = [], [], [], []
    with world.serving() as service:
        for _ in range(scale.runs):
            table = service.create_table(catalog_managed=True)
            with watched(service, table) as lag:
                load = loading.appends(world, service, [table], writers=_WRITERS, seconds=seconds)
            lags.append(lag.seconds)
            most.append(lag.versions)
            refused.append(float(load.told.refused))
            rates.append(load.commits_per_second)
    limits = (
        Limit(name="largest lag", unit="s", values=tuple(lags), floor=_WITHIN_S),
        Limit(name="commits that got a 429", unit="", values=tuple(refused), floor=_NONE),
    )
    note = (
        f"{_WRITERS} writers for {seconds:g} s each on a new table, at "
        f"{', '.join(f'{rate:,.0f}' for rate in rates)} commits/s. "
        f"At most {max(most):,} versions waited. The table's head was looked at ten times a "
        "second, until all was published: a version lags from the first look that saw it, or a "
        "later one, to the first that saw it published."
    )
    return Result(figures=(), limits=limits, notes=(note,))


BENCH = Bench(
    id="b27",
    title="publishing keeps up",
    measured="the largest lag of the log behind the table's head, B1 at 32 writers",
    against="10 s, and no commit held back",
    run=run,
)
