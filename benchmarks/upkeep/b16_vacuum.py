"""B16: finding the files of a large table that nobody needs."""

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

import msgspec
from deltalake import DeltaTable
from obstore import put_async
from obstore.store import S3Store

from benchmarks.frame import Bench, Figure, Limit, Pair, Result, Scale, at_least, at_most
from benchmarks.load.asking import Connection
from benchmarks.rig import large_tables, processes
from benchmarks.rig.service import Service, Table, serving
from benchmarks.rig.world import World
from benchmarks.upkeep.b13_checkpoint import checkpoint

if TYPE_CHECKING:
    from obstore.store import S3Config

_FLOOR = at_least(1.0)
_PEAK_MB = at_most(300.0)
_MB = 1024 * 1024
_COMMITS = 10
_ORPHANS = 100
"""One of so many files is in no version."""
_OLD_S = 30 * 24 * 3600
_QUIET = ("--upkeep-share=0",)
_PUTS_AT_ONCE = 64
_DRY_RUN = msgspec.json.encode({"dry_run": True, "retain_ms": 0, "allow_shorter": True})


class _Line(msgspec.Struct):
    stage: str = ""
    listed: int = 0
    found: int = 0
    paths: list[str] = []
    detail: str | None = None


def run(world: World, scale: Scale) -> Result:
    figures, limits, notes = [], [], []
    files, young_s = scale.pick(quick=(10_000, 3), full=(1_000_000, 120))
    for place in (_local(world), _on_s3(world)):
        database_url = world.new_database()
        with serving(world.new_folder() / "data", database_url, *_QUIET, *place.flags) as service:
            table = _filled(service, files)
        place.put(table, [*_paths("f", files), *_paths("orphan", files // _ORPHANS)])
        # Another process: what the first one took to have the files in is not of the vacuum.
        # It takes no file that a request which is under way might yet name.
        soon = (*_QUIET, f"--deadline-seconds={young_s}", f"--long-deadline-seconds={young_s}")
        if place.is_dated_by_store:
            time.sleep(young_s + 1)
        with serving(world.new_folder() / "data", database_url, *soon, *place.flags) as service:
            measured = _measured(service, table, place, files, scale)
        figures.append(
            Figure(name=place.name, unit="files/s", pairs=tuple(measured.pairs), floor=_FLOOR)
        )
        peak = f"the service's peak of memory, {place.name}"
        limits.append(Limit(name=peak, unit="MB", values=tuple(measured.peaks), floor=_PEAK_MB))
        notes.append(f"{place.name}: {min(measured.alone):.2f} s at least are its `vacuum` alone")
    return Result(
        figures=tuple(figures), limits=tuple(limits), notes=(_note(files, "; ".join(notes)),)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a table is: what the service and deltalake are told of it, and how empty files get
    there, old ones unless the store dates them."""

    name: str
    flags: Sequence[str]
    options: Mapping[str, str]
    put: Callable[[Table, Sequence[str]], None]
    is_dated_by_store: bool


def _local(world: World) -> _Place:
    return _Place(
        name="local files",
        flags=[f"--warehouse={world.new_folder().as_uri()}"],
        options={},
        put=_touch,
        is_dated_by_store=False,
    )


def _on_s3(world: World) -> _Place:
    options = world.s3.storage_options
    flags = [f"--storage-option={key}={value}" for key, value in options.items()]
    store = S3Store(world.s3.bucket, config=cast("S3Config", options))
    return _Place(
        name="an S3 server",
        flags=[f"--warehouse={world.s3.new_prefix()}", *flags],
        options=options,
        put=lambda table, paths: asyncio.run(_put_objects(store, table, paths)),
        is_dated_by_store=True,
    )


def _filled(service: Service, files: int) -> Table:
    table = service.create_table(catalog_managed=False, partition_columns=("p",))
    large_tables.grow_files(service, table, files=files, commits=_COMMITS, name="f")
    large_tables.settle(service.database_url)
    with Connection(service) as connection:
        checkpoint(connection, table)
    return table


def _paths(name: str, count: int) -> Iterator[str]:
    return (large_tables.file_path(name, number) for number in range(count))


def _touch(table: Table, paths: Sequence[str]) -> None:
    folder = large_tables.log_folder(table).parent
    then = time.time() - _OLD_S
    for path in paths:
        file = folder / path
        file.parent.mkdir(exist_ok=True)
        file.touch()
        os.utime(file, (then, then))


async def _put_objects(store: S3Store, table: Table, paths: Sequence[str]) -> None:
    prefix = urlsplit(table.location).path.lstrip("/")
    left = iter(paths)

    async def put() -> None:
        for path in left:
            await put_async(store, f"{prefix}/{path}", b"")

    await asyncio.gather(*(put() for _ in range(_PUTS_AT_ONCE)))


@dataclass(slots=True)
class _Measured:
    pairs: list[Pair] = field(default_factory=list)
    alone: list[float] = field(default_factory=list)
    peaks: list[float] = field(default_factory=list)


def _measured(service: Service, table: Table, place: _Place, files: int, scale: Scale) -> _Measured:
    found, orphans = _Measured(), files // _ORPHANS
    # What the first one brings into the disk's cache, both find there.
    _by_service(service, table, files, orphans)
    for _ in range(scale.runs):
        opened, against = _by_deltalake(table, place, orphans)
        found.alone.append(against - opened)
        processes.forget_peak(service.pid)
        seconds = _by_service(service, table, files, orphans)
        found.peaks.append(processes.peak_rss_bytes(service.pid) / _MB)
        listed = files + orphans
        found.pairs.append(Pair(measured=listed / seconds, against=listed / against))
    return found


def _by_service(service: Service, table: Table, files: int, orphans: int) -> float:
    path = f"/api/v1/tables/{table.name}/vacuum"
    # The other side takes longer than a connection waits.
    with Connection(service) as connection:
        asked = connection.post(path, _DRY_RUN, expected=200)
    lines = [msgspec.json.decode(line, type=_Line) for line in asked.content.splitlines()]
    named = sum(len(line.paths) for line in lines)
    if (lines[-1].listed, named) != (files + orphans, orphans):
        raise RuntimeError(f"expected {orphans} of {files + orphans} files, found {lines[-1]}")
    return asked.seconds


def _by_deltalake(location: Table, place: _Place, orphans: int) -> tuple[float, float]:
    """The seconds until the table is opened, and until its dry run has named the orphans."""
    began = time.perf_counter()
    table = DeltaTable(location.location, storage_options=dict(place.options))
    opened = time.perf_counter() - began
    found = table.vacuum(
        retention_hours=0, dry_run=True, enforce_retention_duration=False, full=True
    )
    seconds = time.perf_counter() - began
    if len(found) != orphans:
        raise RuntimeError(f"expected {orphans} orphans, found {len(found)} by deltalake")
    return opened, seconds


def _note(files: int, alone: str) -> str:
    return (
        f"{files:,} empty files of the table in {large_tables.PARTITIONS} folders, and a hundredth "
        "as many orphans among them. The service lists the folder and reads its index, over HTTP, "
        "in a process that has done nothing else. deltalake opens the table from a checkpoint "
        f"of its latest version, which is in its time ({alone})."
    )


BENCH = Bench(
    id="b16",
    title="what VACUUM finds",
    measured="a dry run of the service over HTTP, and its peak of memory",
    against="deltalake opening the same table, and its full dry run",
    run=run,
)
