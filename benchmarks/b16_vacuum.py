"""B16: finding the files of a large table that nobody needs."""

import os
import time
from pathlib import Path

import msgspec
from deltalake import DeltaTable

from benchmarks import large_tables, processes
from benchmarks.asking import Connection
from benchmarks.b13_checkpoint import checkpoint
from benchmarks.frame import Bench, Figure, Limit, Pair, Result, Scale, at_least, at_most
from benchmarks.service import Service, Table, serving
from benchmarks.world import World

_FLOOR = at_least(1.0)
_PEAK_MB = at_most(300.0)
_MB = 1024 * 1024
_COMMITS = 10
_ORPHANS = 100
"""One of so many files is in no version."""
_OLD_S = 30 * 24 * 3600
_DRY_RUN = msgspec.json.encode({"dry_run": True, "retain_ms": 0, "allow_shorter": True})


class _Line(msgspec.Struct):
    stage: str = ""
    listed: int = 0
    found: int = 0
    paths: list[str] = []
    detail: str | None = None


def run(world: World, scale: Scale) -> Result:
    files = scale.pick(quick=10_000, full=1_000_000)
    home, database_url = world.folder / "vacuumed", world.new_database()
    with serving(home, database_url, "--upkeep-share=0") as service:
        table = _filled(service, files)
    orphans = _put_files(table, files)
    # Another process: what the first one took to have the files in is not of the vacuum.
    again = world.folder / "vacuuming"
    with serving(again, database_url, "--upkeep-share=0", f"--data-dir={home}") as service:
        return _measured(service, table, files, orphans, scale)


def _filled(service: Service, files: int) -> Table:
    table = service.create_table(catalog_managed=False, partition_columns=("p",))
    large_tables.grow_files(service, table, files=files, commits=_COMMITS, name="f")
    large_tables.settle(service.database_url)
    with Connection(service) as connection:
        checkpoint(connection, table)
    return table


def _put_files(table: Table, files: int) -> int:
    """Empty files of the names in the table's log, and orphans beside them; all are old."""
    folder = large_tables.log_folder(table).parent
    orphans = files // _ORPHANS
    then = time.time() - _OLD_S
    names = [("f", number) for number in range(files)]
    names += [("orphan", number) for number in range(orphans)]
    for name, number in names:
        path = folder / large_tables.file_path(name, number)
        path.parent.mkdir(exist_ok=True)
        path.touch()
        os.utime(path, (then, then))
    return orphans


def _measured(service: Service, table: Table, files: int, orphans: int, scale: Scale) -> Result:
    folder = large_tables.log_folder(table).parent
    pairs: list[Pair] = []
    alone: list[float] = []
    peaks: list[float] = []
    with Connection(service) as connection:
        # What the first one brings into the disk's cache, both find there.
        _by_service(connection, table, files, orphans)
        for _ in range(scale.runs):
            opened, against = _by_deltalake(folder, orphans)
            alone.append(against - opened)
            processes.forget_peak(service.pid)
            seconds = _by_service(connection, table, files, orphans)
            peaks.append(processes.peak_rss_bytes(service.pid) / _MB)
            listed = files + orphans
            pairs.append(Pair(measured=listed / seconds, against=listed / against))
    figure = Figure(name="local files", unit="files/s", pairs=tuple(pairs), floor=_FLOOR)
    peak = Limit(
        name="the service's peak of memory", unit="MB", values=tuple(peaks), floor=_PEAK_MB
    )
    return Result(figures=(figure,), limits=(peak,), notes=(_note(files, orphans, min(alone)),))


def _by_service(connection: Connection, table: Table, files: int, orphans: int) -> float:
    path = f"/api/v1/tables/{table.name}/vacuum"
    asked = connection.post(path, _DRY_RUN, expected=200)
    lines = [msgspec.json.decode(line, type=_Line) for line in asked.content.splitlines()]
    named = sum(len(line.paths) for line in lines)
    if (lines[-1].listed, named) != (files + orphans, orphans):
        raise RuntimeError(f"expected {orphans} of {files + orphans} files, found {lines[-1]}")
    return asked.seconds


def _by_deltalake(folder: Path, orphans: int) -> tuple[float, float]:
    """The seconds until the table is opened, and until its dry run has named the orphans."""
    began = time.perf_counter()
    table = DeltaTable(folder)
    opened = time.perf_counter() - began
    found = table.vacuum(
        retention_hours=0, dry_run=True, enforce_retention_duration=False, full=True
    )
    seconds = time.perf_counter() - began
    if len(found) != orphans:
        raise RuntimeError(f"expected {orphans} orphans, found {len(found)} by deltalake")
    return opened, seconds


def _note(files: int, orphans: int, alone: float) -> str:
    return (
        f"{files:,} empty files of the table in {large_tables.PARTITIONS} folders, and {orphans:,} "
        "orphans among them. The service lists the folder and reads its index, over HTTP, in "
        "a process that has done nothing else. deltalake opens the table from a checkpoint "
        f"of its latest version, which is in its time; {alone:.2f} s at least are its `vacuum` "
        "alone. Not measured on an object store."
    )


BENCH = Bench(
    id="b16",
    title="what VACUUM finds",
    measured="a dry run of the service over HTTP, and its peak of memory",
    against="deltalake opening the same table, and its full dry run",
    run=run,
)
