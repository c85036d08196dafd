"""B17: how many bytes of index a commit and a live file take, once retention has done its work."""

import asyncio
import time
from dataclasses import dataclass

import psycopg

from benchmarks.frame import Bench, Figure, Pair, Result, Scale, at_most
from benchmarks.rig import large_tables
from benchmarks.rig.service import Service, Table, succeeded
from benchmarks.rig.world import World
from tidegate_service.core.observe.telemetry import UpkeepKind
from tidegate_service.index.postgres.engine import create_engine
from tidegate_service.index.upkeep.standing import PostgresUpkeep

_FLOOR = at_most(1.5)
_SIZES = """
    SELECT relname, pg_table_size(oid), pg_indexes_size(oid)
    FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
"""


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Bytes of each table in the database, its indexes included, and of those of `files` alone."""

    of: dict[str, int]
    file_indexes: int

    @property
    def files(self) -> int:
        return self.of["files"]

    @property
    def commits(self) -> int:
        """Of all that is no file."""
        return sum(self.of.values()) - self.files


def run(world: World, scale: Scale) -> Result:
    number = scale.pick(quick=5_000, full=1_000_000)
    with world.serving("--upkeep-share=0") as service:
        table = service.create_table(catalog_managed=False, partition_columns=("p",))
        large_tables.grow_versions(service, table, through=number, name="v")
        # What is empty is used again, but not given back to the disk.
        before = _sizes(service)
        batches = asyncio.run(_expire(service, table, below=number))
        after = _sizes(service)
    json = _json_bytes(table, number)
    line = len(large_tables.add_line("v", number)) + 1
    figures = (
        _figure("a commit, with what it changed", before.commits, json, number, floor=False),
        _figure("a commit, after retention", after.commits, json, number),
        _figure("a live file, with statistics", after.files, line * number, number),
        _figure(
            "a commit and its file, after retention", after.commits + after.files, json, number
        ),
    )
    return Result(figures=figures, notes=(_note(number, after, batches),))


def _figure(name: str, found: int, json: int, number: int, *, floor: bool = True) -> Figure:
    pair = Pair(measured=found / number, against=json / number)
    return Figure(name=name, unit="bytes", pairs=(pair,), floor=_FLOOR if floor else None)


def _json_bytes(table: Table, number: int) -> int:
    """Of the log's files of these versions."""
    log = large_tables.log_folder(table)
    return sum((log / f"{version:020d}.json").stat().st_size for version in range(1, number + 1))


async def _expire(service: Service, table: Table, *, below: int) -> list[float]:
    """Have the index drop the versions as its upkeep does, all at once; the seconds of each
    batch."""
    engine = create_engine(service.database_url)
    upkeep = PostgresUpkeep(engine)
    table_id = succeeded(service.http.get(f"{service.api}/tables/{table.name}")).json()["id"]
    seconds, first = [], 0
    while first < below:
        began = time.perf_counter()
        dropped = await upkeep.drop_versions(
            table_id, UpkeepKind.EXPIRED_VERSIONS, below=below, epoch=0
        )
        seconds.append(time.perf_counter() - began)
        if dropped is None or not dropped.dropped:
            raise RuntimeError(f"nothing was dropped of {table.name} at version {first}")
        first = dropped.first
    await engine.dispose()
    return seconds


def _sizes(service: Service) -> _Sizes:
    with psycopg.connect(service.database_url, autocommit=True) as connection:
        connection.execute("VACUUM FULL")
        rows = connection.execute(_SIZES).fetchall()
    return _Sizes(
        of={name: of_table + of_indexes for name, of_table, of_indexes in rows},
        file_indexes=next(of_indexes for name, _, of_indexes in rows if name == "files"),
    )


def _note(number: int, after: _Sizes, batches: list[float]) -> str:
    middle = sorted(batches)[len(batches) // 2]
    return (
        f"{number:,} blind appends of one file each, all live, with `add` lines of some 360 bytes; "
        "one table in a database of its own, whose tables were written anew (`VACUUM FULL`) before "
        "they were measured, since what is empty is used again and not given back. Before: "
        "everything is in the index. After: all versions but the last one have expired, in "
        f"{len(batches):,} batches of {1000 * middle:.0f} ms (p50; the longest took "
        f"{1000 * max(batches):.0f} ms). What is left of a commit is its transaction id with its "
        f"receipt: {after.of['past_commits'] / number:.0f} bytes. Of a file's "
        f"{after.files / number:.0f} bytes, indexes are {after.file_indexes / number:.0f}."
    )


BENCH = Bench(
    id="b17",
    title="bytes of index",
    measured="bytes in Postgres, indexes included, of each commit and of each live file",
    against="the bytes of the commit's JSON in the log, and of the file's line in it",
    run=run,
)
