"""B8: which files a reader of one partition needs, asked of the service and of the log."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from benchmarks.frame import Bench, Figure, Pair, Result, Scale, at_least
from benchmarks.load.asking import JSON, NDJSON, Connection
from benchmarks.rig import large_tables
from benchmarks.rig.large_tables import PARTITIONS, partition
from benchmarks.rig.service import Table
from benchmarks.rig.world import World

_FLOOR = at_least(5.0)
_ARROW = "application/vnd.apache.arrow.stream"
_COMMITS = 10
_PARTITION = partition(7)
_SCANS = 3
_ROWS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_FILES = msgspec.json.Decoder(list[dict[str, object]])
_FILE = msgspec.json.Decoder(dict[str, object])

Scan = Callable[[], int]
"""Makes a scan and returns how many files it found."""


@dataclass(frozen=True, slots=True)
class _Asking:
    """Scans of the service; the answer is read whole, into values."""

    connection: Connection
    table: Table

    def json(self) -> int:
        return len(_FILES.decode(_ROWS.decode(self._answer(JSON))["files"]))

    def ndjson(self) -> int:
        _, *files = self._answer(NDJSON).splitlines()
        return len([_FILE.decode(line) for line in files])

    def arrow(self) -> int:
        with pa.ipc.open_stream(self._answer(_ARROW)) as reader:
            rows: int = reader.read_all().num_rows
        return rows

    def _answer(self, accept: str) -> bytes:
        body = msgspec.json.encode({"predicates": [f"p = '{_PARTITION}'"]})
        path = f"/api/v1/tables/{self.table.name}/scan"
        return self.connection.post(path, body, expected=200, accept=accept).content


def run(world: World, scale: Scale) -> Result:
    files = scale.pick(quick=20_000, full=1_000_000)
    with world.serving() as service:
        table = service.create_table(catalog_managed=False, partition_columns=("p",))
        large_tables.grow_files(service, table, files=files, commits=_COMMITS, name="f")
        folder = large_tables.log_folder(table).parent
        DeltaTable(folder).create_checkpoint()
        large_tables.settle(service.database_url)
        wanted = files // PARTITIONS
        with Connection(service) as connection:
            asking = _Asking(connection, table)
            ours = {"JSON": asking.json, "NDJSON": asking.ndjson, "Arrow": asking.arrow}
            figures = _figures(ours, lambda: _filtered(folder), wanted, scale)
        uris = [_seconds(lambda: _uris(folder), wanted) for _ in range(scale.runs)]
    return Result(figures=figures, notes=(_note(files, wanted, median(uris)),))


def _figures(ours: dict[str, Scan], theirs: Scan, wanted: int, scale: Scale) -> tuple[Figure, ...]:
    found: dict[str, list[Pair]] = {name: [] for name in ours}
    for scan in ours.values():
        _seconds(scan, wanted)
    for _ in range(scale.runs):
        against = _seconds(theirs, wanted)
        for name, scan in ours.items():
            measured = median(_seconds(scan, wanted) for _ in range(_SCANS))
            found[name].append(Pair(measured=1 / measured, against=1 / against))
    return tuple(
        Figure(name=name, unit="scans/s", pairs=tuple(pairs), floor=_FLOOR)
        for name, pairs in found.items()
    )


def _seconds(scan: Scan, wanted: int) -> float:
    started = time.perf_counter()
    found = scan()
    seconds = time.perf_counter() - started
    if found != wanted:
        raise RuntimeError(f"expected {wanted} files, found {found}")
    return seconds


def _filtered(folder: Path) -> int:
    actions = pa.table(DeltaTable(folder).get_add_actions(flatten=True))
    rows: int = actions.filter(pc.equal(actions["partition.p"], _PARTITION)).num_rows
    return rows


def _uris(folder: Path) -> int:
    return len(DeltaTable(folder).file_uris([("p", "=", _PARTITION)]))


def _note(files: int, wanted: int, uris: float) -> str:
    return (
        f"{wanted:,} of {files:,} files, in one of {PARTITIONS} partitions. The service's answer "
        f"is read whole and parsed; a median of {_SCANS} scans a turn. deltalake opens the table "
        "from a checkpoint of its latest version that it wrote itself, and its add actions are "
        "filtered as an Arrow table; asked for the paths alone (`file_uris` with a partition "
        f"filter) it takes {uris:.2f} s."
    )


BENCH = Bench(
    id="b8",
    title="a pruned scan",
    measured="scans over HTTP of one partition of a hundred",
    against="deltalake opening the same table from a checkpoint and filtering its add actions",
    run=run,
)
