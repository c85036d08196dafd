"""B4: a plain table on an S3 server, against the server's own conditional PUTs in sequence."""

import time
from typing import TYPE_CHECKING, cast

from obstore import put
from obstore.store import S3Store

from benchmarks import loading
from benchmarks.frame import Bench, Result, Scale, at_least
from benchmarks.service import Service, Table, succeeded
from benchmarks.world import World

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
            for turn in range(scale.runs):
                table = service.create_table(catalog_managed=False)
                load = loading.appends(world, service, [table], writers=writers, seconds=seconds)
                content = _commit_of(service, table)
                rate = _put_rate(world, content, f"{PREFIX}/{writers}-{turn}", seconds)
                turns.append((load, rate))
            figures.append(
                loading.figure(
                    turns, name=f"{writers} writers", floor=at_least(0.9), at=float(writers)
                )
            )
    return Result(
        figures=tuple(figures),
        notes=(
            "A plain table's versions are files that are put one after the other, each only where "
            "there is none: no log of this kind can grow faster than that.",
        ),
    )


def _commit_of(service: Service, table: Table) -> bytes:
    """Version 1 as it is in the log, the pattern of what is put."""
    return succeeded(service.http.get(f"{service.api}/tables/{table.name}/commits/1")).content


def _put_rate(world: World, content: bytes, prefix: str, seconds: float) -> float:
    """Objects a second, one at a time, on one connection, as `If-None-Match: *` has it."""
    config = cast("S3Config", world.s3.storage_options)
    store = S3Store(world.s3.bucket, config=config)
    put(store, f"{prefix}/first", content, mode="create")
    started, done = time.perf_counter(), 0
    while time.perf_counter() - started < seconds:
        put(store, f"{prefix}/{done:020}.json", content, mode="create")
        done += 1
    return done / (time.perf_counter() - started)


BENCH = Bench(
    id="b4",
    title="one plain table on S3",
    measured="commits/s over HTTP, blind appends of one file, on one plain table on an S3 server",
    against="that server's rate of conditional PUTs of objects of the same content, one after the "
    "other, from one process",
    run=run,
)
