"""B13: a checkpoint of very many files."""

import time
from pathlib import Path
from statistics import median

import msgspec
from deltalake import DeltaTable

from benchmarks.frame import Bench, Figure, Limit, Pair, Result, Scale, at_least, at_most
from benchmarks.load.asking import Connection
from benchmarks.rig import large_tables, processes
from benchmarks.rig.service import Service, Table
from benchmarks.rig.world import World

_FLOOR = at_least(1.5)
_PEAK_MB = at_most(500.0)
_MB = 1024 * 1024
_COMMITS = 10


class Written(msgspec.Struct):
    """Of the answer to a checkpoint."""

    kind: str
    files: int
    files_written: int
    bytes_written: int
    num_actions: int


_WRITTEN = msgspec.json.Decoder(Written)


def checkpoint(connection: Connection, table: Table) -> tuple[float, Written]:
    """Have the service write one; how long that took in seconds, over HTTP."""
    asked = connection.post(f"/api/v1/tables/{table.name}/checkpoint", b"{}", expected=200)
    return asked.seconds, _WRITTEN.decode(asked.content)


def run(world: World, scale: Scale) -> Result:
    files = scale.pick(quick=20_000, full=1_000_000)
    with world.serving() as service:
        table = service.create_table(catalog_managed=False, partition_columns=("p",))
        large_tables.grow_files(service, table, files=files, commits=_COMMITS, name="f")
        large_tables.settle(service.database_url)
        return _measured(service, table, files, scale)


def _measured(service: Service, table: Table, files: int, scale: Scale) -> Result:
    log = large_tables.log_folder(table)
    pairs: list[Pair] = []
    alone: list[float] = []
    peaks: list[float] = []
    with Connection(service) as connection:
        checkpoint(connection, table)
        for _ in range(scale.runs):
            _forget(log)
            opened, against = _by_deltalake(log.parent)
            alone.append(against - opened)
            _forget(log)
            processes.forget_peak(service.pid)
            seconds, written = checkpoint(connection, table)
            peaks.append(processes.peak_rss_bytes(service.pid) / _MB)
            if written.num_actions != files + 2:
                raise RuntimeError(f"expected {files + 2} actions, found {written}")
            pairs.append(Pair(measured=files / seconds, against=files / against))
    if len(DeltaTable(log.parent).file_uris()) != files:
        raise RuntimeError("the service's checkpoint has other files than the table")
    figure = Figure(name="a classic checkpoint", unit="files/s", pairs=tuple(pairs), floor=_FLOOR)
    peak = Limit(
        name="the service's peak of memory", unit="MB", values=tuple(peaks), floor=_PEAK_MB
    )
    return Result(figures=(figure,), limits=(peak,), notes=(_note(files, median(alone)),))


def _forget(log: Path) -> None:
    """Let neither start from the other's."""
    for path in (*log.glob("*.checkpoint*.parquet"), log / "_last_checkpoint"):
        path.unlink(missing_ok=True)


def _by_deltalake(folder: Path) -> tuple[float, float]:
    """The seconds until the table is opened, and until its checkpoint is there."""
    began = time.perf_counter()
    table = DeltaTable(folder)
    opened = time.perf_counter()
    table.create_checkpoint()
    return opened - began, time.perf_counter() - began


def _note(files: int, alone: float) -> str:
    return (
        f"{files:,} files of {_COMMITS} commits. Before each turn the checkpoint of the one before "
        "is deleted. The service is asked over HTTP and reads its index; its peak includes what is "
        "left of taking the files in. deltalake opens the table, which has to be read before "
        f"anything can be made of it, and writes what it has in memory then: {alone:.2f} s of its "
        "time are `create_checkpoint` alone."
    )


BENCH = Bench(
    id="b13",
    title="a checkpoint of many files",
    measured="a classic checkpoint written by the service, over HTTP, and its peak of memory",
    against="deltalake opening the same table, and its create_checkpoint",
    run=run,
)
