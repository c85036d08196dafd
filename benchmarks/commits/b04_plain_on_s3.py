"""B4: a plain table on an S3 server, against the server's own conditional PUTs in sequence."""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from obstore import put
from obstore.store import S3Store

from benchmarks.frame import Bench, Figure, Pair, Result, Scale, at_least
from benchmarks.load import loading
from benchmarks.load.other_work import OtherWork, other_work
from benchmarks.rig.service import Service, Table, succeeded
from benchmarks.rig.world import World

if TYPE_CHECKING:
    from obstore.store import S3Config

WRITERS = (8, 32)
PREFIX = "puts"


def run(world: World, scale: Scale) -> Result:
    options = [f"--storage-option={key}={value}" for key, value in world.s3.storage_options.items()]
    seconds = scale.pick(quick=1.0, full=5.0)
    figures = []
    with world.serving(f"--warehouse={world.s3.new_prefix()}", *options) as service:
        for writers in WRITERS:
            turns = []
            beside = []
            for turn in range(scale.runs):
                table = service.create_table(catalog_managed=False)
                load = loading.appends(world, service, [table], writers=writers, seconds=seconds)
                content = _commit_of(service, table)
                alone = _puts(world, content, f"{PREFIX}/{writers}-{turn}", seconds)
                turns.append((load, alone.rate))
                # What a commit takes of everything but the S3 server, its own PUT left out.
                rest_us = sum(us for name, us in load.cpu_us.items() if name != "s3") - alone.cpu_us
                with other_work(max(0.0, rest_us), most=writers) as work:
                    limit = _puts(world, content, f"{PREFIX}/{writers}-{turn}b", seconds, work)
                beside.append(Pair(measured=load.commits_per_second, against=limit.rate))
            figures += [
                loading.figure(
                    turns, name=f"{writers} writers", floor=at_least(0.9), at=float(writers)
                ),
                Figure(
                    name=f"{writers} writers, against PUTs beside as much other work",
                    unit="commits/s",
                    pairs=tuple(beside),
                ),
            ]
    return Result(
        figures=tuple(figures),
        notes=(
            "A plain table's versions are files that are put one after the other, each only where "
            "there is none: no log of this kind can grow faster than that.",
            "The second figure is held against the same PUTs while another process takes, for "
            "each of them, as much CPU time as a commit took of the service, Postgres and the "
            "load generator: what a service would reach here that keeps no PUT waiting for "
            "anything.",
        ),
    )


def _commit_of(service: Service, table: Table) -> bytes:
    """Version 1 as it is in the log, the pattern of what is put."""
    return succeeded(service.http.get(f"{service.api}/tables/{table.name}/commits/1")).content


@dataclass(frozen=True, slots=True)
class _Puts:
    """A second, and the CPU time of this process that each took."""

    rate: float
    cpu_us: float


def _puts(
    world: World, content: bytes, prefix: str, seconds: float, work: OtherWork | None = None
) -> _Puts:
    """Objects, one at a time, on one connection, as `If-None-Match: *` has it; a piece of other
    work is begun with each."""
    config = cast("S3Config", world.s3.storage_options)
    store = S3Store(world.s3.bucket, config=config)
    put(store, f"{prefix}/first", content, mode="create")
    started, cpu, done = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - started < seconds:
        if work is not None:
            work.begin()
        put(store, f"{prefix}/{done:020}.json", content, mode="create")
        done += 1
    cpu = time.process_time() - cpu
    return _Puts(done / (time.perf_counter() - started), 1e6 * cpu / done)


BENCH = Bench(
    id="b4",
    title="one plain table on S3",
    measured="commits/s over HTTP, blind appends of one file, on one plain table on an S3 server",
    against="that server's rate of conditional PUTs of objects of the same content, one after the "
    "other, from one process",
    run=run,
)
