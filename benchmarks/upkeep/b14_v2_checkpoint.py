"""B14: a V2 checkpoint after a commit to one partition."""

import itertools

import msgspec

from benchmarks.frame import Bench, Figure, Pair, Result, Scale, at_most
from benchmarks.load.asking import NDJSON, Connection
from benchmarks.rig import large_tables
from benchmarks.rig.large_tables import PARTITIONS
from benchmarks.rig.service import Table
from benchmarks.rig.world import World
from benchmarks.upkeep.b13_checkpoint import checkpoint

_FLOOR = at_most(0.1)
_COMMITS = 10
_APPENDED = 10
_PROPERTIES = {"delta.checkpointPolicy": "v2", "delta.feature.v2Checkpoint": "supported"}


def run(world: World, scale: Scale) -> Result:
    files = scale.pick(quick=100_000, full=1_000_000)
    pairs: list[Pair] = []
    written_again: list[int] = []
    numbers = itertools.count(1)
    with world.serving() as service:
        for turn in range(scale.runs):
            table = service.create_table(
                catalog_managed=False, partition_columns=("p",), properties=_PROPERTIES
            )
            name = f"f{turn}"
            large_tables.grow_files(service, table, files=files, commits=_COMMITS, name=name)
            large_tables.settle(service.database_url)
            # The service ends a connection that idles for as long as such a table takes.
            with Connection(service) as connection:
                first, _ = checkpoint(connection, table)
                _append(connection, table, f"{name}-{next(numbers)}")
                seconds, written = checkpoint(connection, table)
            written_again.append(written.files_written)
            pairs.append(Pair(measured=seconds, against=first))
    figure = Figure(name="a V2 checkpoint", unit="s", pairs=tuple(pairs), floor=_FLOOR)
    return Result(figures=(figure,), notes=(_note(files, max(written_again)),))


def _append(connection: Connection, table: Table, name: str) -> None:
    """A few files of one partition."""
    first = PARTITIONS
    lines = [msgspec.json.encode({"operation": "WRITE", "transaction_id": name})]
    lines += [large_tables.add_line(name, first + place * PARTITIONS) for place in range(_APPENDED)]
    body = b"".join(line + b"\n" for line in lines)
    connection.post(large_tables.commits_url(table), body, expected=201, kind=NDJSON)


def _note(files: int, written: int) -> str:
    return (
        f"{files:,} files in {PARTITIONS} partitions, then {_APPENDED} more in one of them. The "
        f"checkpoint after that has at most {written} files written anew, its main file included; "
        "its other sidecars are those of the first one. Each turn has a new table."
    )


BENCH = Bench(
    id="b14",
    title="a V2 checkpoint of what changed",
    measured="the checkpoint after a commit to one of 100 partitions",
    against="the table's first one",
    run=run,
)
