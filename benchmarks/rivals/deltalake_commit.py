"""One commit by deltalake in a process of its own, whose memory and time are told on standard
output: `python -m benchmarks.rivals.deltalake_commit FOLDER FILES`."""

import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pyarrow as pa
from deltalake import DeltaTable, PostCommitHookProperties
from deltalake.transaction import AddAction, RemoveAction

from benchmarks.rig import processes
from benchmarks.rig.large_tables import add_line

_ROOT = Path(__file__).parents[2]
_SCHEMA = pa.schema([("id", pa.int64()), ("value", pa.float64()), ("p", pa.string())])
_ONLY_THE_COMMIT = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """`seconds` and `cpu_s` are of the commit alone; `making_s` is how long deltalake's objects
    of the actions took to make before it."""

    seconds: float
    cpu_s: float
    making_s: float
    peak_bytes: int
    log_bytes: int


class _Add(msgspec.Struct, frozen=True, rename="camel"):
    path: str
    partition_values: dict[str, str | None]
    size: int
    modification_time: int
    data_change: bool
    stats: str


class _Line(msgspec.Struct, frozen=True):
    add: _Add


_LINES = msgspec.json.Decoder(_Line)


def told(folder: Path, *, files: int) -> Told:
    """Have it done in another process: the folder becomes a table with one commit."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.rivals.deltalake_commit", str(folder), str(files)],
        cwd=_ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    return msgspec.json.decode(done.stdout, type=Told)


def _commit(folder: Path, files: int) -> Told:
    DeltaTable.create(folder, _SCHEMA, partition_by=["p"])
    adds = [_LINES.decode(add_line("million", number)).add for number in range(files)]
    started = time.perf_counter()
    actions: list[AddAction | RemoveAction] = [_action(add) for add in adds]
    making_s = time.perf_counter() - started
    table = DeltaTable(folder)
    started, cpu = time.perf_counter(), time.process_time()
    table.create_write_transaction(
        actions,
        "append",
        table.schema(),
        partition_by=["p"],
        post_commithook_properties=_ONLY_THE_COMMIT,
    )
    return Told(
        seconds=time.perf_counter() - started,
        cpu_s=time.process_time() - cpu,
        making_s=making_s,
        peak_bytes=processes.peak_rss_bytes(os.getpid()),
        log_bytes=(folder / "_delta_log" / f"{1:020}.json").stat().st_size,
    )


def _action(add: _Add) -> AddAction:
    return AddAction(
        add.path, add.size, add.partition_values, add.modification_time, add.data_change, add.stats
    )


if __name__ == "__main__":
    found = _commit(Path(sys.argv[1]), int(sys.argv[2]))
    print(msgspec.json.encode(found).decode())
