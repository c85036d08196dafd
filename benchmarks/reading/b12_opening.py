"""B12: opening a table after very many commits, beside the same table with a fresh checkpoint."""

import time
from pathlib import Path

from deltalake import DeltaTable

from benchmarks.frame import Bench, Figure, Pair, Result, Scale, at_most
from benchmarks.load import loading
from benchmarks.load.asking import Connection
from benchmarks.rig import large_tables
from benchmarks.rig.service import Service, Table
from benchmarks.rig.world import World
from benchmarks.upkeep.b13_checkpoint import checkpoint

_FLOOR = at_most(2.0)
_WRITERS = 32
_PORTION_S = 5.0


def run(world: World, scale: Scale) -> Result:
    commits = scale.pick(quick=1_500, full=100_000)
    pairs: list[Pair] = []
    rates: list[float] = []
    behind: list[int] = []
    for _ in range(scale.runs):
        # A service each: the upkeep of the tables before would be at work, too.
        with world.serving() as service:
            table = service.create_table(catalog_managed=False)
            rates.append(_grow(world, service, table, commits))
            folder = large_tables.log_folder(table).parent
            behind.append(_behind(folder))
            opened, files = _opened_s(folder)
            # Only now: the service closes connections that are not used.
            with Connection(service) as connection:
                checkpoint(connection, table)
            fresh, same_files = _opened_s(folder)
            if files != same_files:
                raise RuntimeError(f"expected the same table, found {files} and {same_files} files")
            pairs.append(Pair(measured=opened, against=fresh))
    figure = Figure(name=f"after {commits:,} commits", unit="s", pairs=tuple(pairs), floor=_FLOOR)
    return Result(figures=(figure,), notes=(_note(rates, behind),))


def _grow(world: World, service: Service, table: Table, commits: int) -> float:
    """Commit without a pause, until so many have come and are in the log; commits a second."""
    rate = 0.0
    while service.head(table)[0] < commits:
        seconds = min(_PORTION_S, commits / 1_500)
        load = loading.appends(world, service, [table], writers=_WRITERS, seconds=seconds)
        rate = load.commits_per_second
    return rate


def _behind(folder: Path) -> int:
    """How many commits lie behind the newest checkpoint when it is opened."""
    log = folder / "_delta_log"
    newest = max((int(path.name[:20]) for path in log.glob("*.checkpoint*.parquet")), default=-1)
    head = max(int(path.stem) for path in log.glob("*.json") if path.stem.isdigit())
    return head - newest


def _opened_s(folder: Path) -> tuple[float, int]:
    """How long it takes to open the table with its list of files, and how many those are."""
    began = time.perf_counter()
    files = len(DeltaTable(folder).file_uris())
    return time.perf_counter() - began, files


def _note(rates: list[float], behind: list[int]) -> str:
    return (
        "A plain table, since deltalake opens no catalog-managed one by its path. Commits of one "
        f"file by {_WRITERS} writers, in portions of up to {_PORTION_S:g} s ({min(rates):,.0f} to "
        f"{max(rates):,.0f} commits/s in the last one), with the upkeep of the default settings. "
        f"Opened as soon as all were in the log, with {min(behind):,} to {max(behind):,} commits "
        "behind the newest checkpoint; deltalake does not read compacted files. Then the service "
        "wrote a checkpoint of the latest version."
    )


BENCH = Bench(
    id="b12",
    title="opening a hot table",
    measured="deltalake opening a table right after very many commits, with its list of files",
    against="deltalake opening the same table with a checkpoint of its latest version",
    run=run,
)
