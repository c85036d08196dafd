"""Checkpoints of some kilobytes that stand for gigabytes, in the log of a table to register."""

import shutil
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.builders.by_x import PROTOCOL, add, metadata
from tests.service.storage import checkpoints
from tests.service.tables.delta_logs import DeltaLog, line, write_rows
from tests.service.tenants.rig import MIB, WRITERS_TABLE, Service, attacked

DAMAGED = Path(checkpoints.__file__).parent / "damaged" / "histogram.parquet"
ROWS = 800
VALUE = b"x" * (2 * MIB)
"""Eight hundred of it are the gigabyte and a half that no service should hold."""


def warehouse(service: Service) -> Path:
    """A folder that tables may be registered in."""
    made = service.client.get(f"{service.api}/tables/{WRITERS_TABLE}").json()["location"]
    return Path(unquote(urlsplit(made).path)).parents[2]


def shared(count: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(
        pa.array([0] * count, pa.int32()), pa.array([VALUE.decode()])
    )


def files(count: int, **columns: pa.Array) -> pa.Table:
    """A checkpoint's rows: protocol, metadata, and so many files with these columns."""
    path = pa.array([f"x=1/{number}" for number in range(count)])
    one = pa.array([1] * count, pa.int64())
    keys = pa.array(["x"] * count)
    values = pa.MapArray.from_arrays(list(range(count + 1)), keys, pa.array(["1"] * count))
    fields = {
        "path": path,
        "partitionValues": values,
        "size": one,
        "modificationTime": one,
        "dataChange": pa.array([False] * count),
    } | columns
    return pa.table({"add": pa.StructArray.from_arrays(list(fields.values()), list(fields))})


def in_a_dictionary(path: Path) -> None:
    pq.write_table(files(ROWS, stats=shared(ROWS)), path, store_schema=False, compression="zstd")


def in_a_map(path: Path) -> None:
    tags = pa.MapArray.from_arrays(list(range(ROWS + 1)), pa.array(["x"] * ROWS), shared(ROWS))
    pq.write_table(files(ROWS, tags=tags), path, store_schema=False, compression="zstd")


def in_one_row(path: Path) -> None:
    keys = pa.array([f"key{number}" for number in range(ROWS)])
    tags = pa.MapArray.from_arrays([0, ROWS], keys, shared(ROWS))
    pq.write_table(files(1, tags=tags), path, store_schema=False, compression="zstd")


def after_the_one_before(path: Path) -> None:
    count = 200
    table = files(count, stats=pa.array([VALUE.decode()] * count))
    pq.write_table(
        table,
        path,
        use_dictionary=False,
        compression="zstd",
        column_encoding={"add.stats": "DELTA_BYTE_ARRAY"},
    )


def in_a_page(path: Path) -> None:
    table = files(1, stats=pa.array(["x" * 200 * MIB]))
    pq.write_table(table, path, use_dictionary=False, compression="zstd")


def in_a_list(values: pa.Array, *, large: bool = False) -> Callable[[Path], None]:
    """In one row, and a list that nobody knows."""
    kind = pa.LargeListArray if large else pa.ListArray

    def write(path: Path) -> None:
        table = files(1, foo=kind.from_arrays([0, len(values)], values))
        pq.write_table(table, path, store_schema=large, compression="zstd")

    return write


RATIO = "more than 100 times as large"
VALUES = "values in lists and maps; at most 10000"
WAYS: dict[str, tuple[Callable[[Path], None], str]] = {
    "dictionary": (in_a_dictionary, RATIO),
    "map": (in_a_map, RATIO),
    "one-row": (in_one_row, "a row of it may take"),
    "delta": (after_the_one_before, RATIO),
    "numbers": (in_a_list(pa.array([1] * 5_000_000, pa.int64())), VALUES),
    "letters": (in_a_list(pa.array(["a"] * 5_000_000)), VALUES),
    "another-list": (in_a_list(shared(ROWS), large=True), "how many values that has"),
    "page": (in_a_page, "a page of add.stats has"),
}


@pytest.mark.parametrize(
    ("way", "kind"), [*((way, "part") for way in WAYS), ("dictionary", "sidecar")]
)
def test_a_small_checkpoint_stays_small(service, way, kind):
    write, why = WAYS[way]
    log = DeltaLog(warehouse(service) / f"bomb-{way}-{kind}")
    single = [line(PROTOCOL), line(metadata())]
    if kind == "part":
        write_rows(log.folder / f"{7:020}.checkpoint.{1:010}.{2:010}.parquet", single)
        file = log.folder / f"{7:020}.checkpoint.{2:010}.{2:010}.parquet"
    else:
        (log.folder / "_sidecars").mkdir()
        file = log.folder / "_sidecars" / "a.parquet"
        sidecar = {"sidecar": {"path": "a.parquet", "sizeInBytes": 1, "modificationTime": 1}}
        uuid = "80a083e8-7026-4e79-81be-64bd76c43a11"
        write_rows(log.folder / f"{7:020}.checkpoint.{uuid}.parquet", [*single, sidecar])
    write(file)
    assert file.stat().st_size < 64 * 1024

    def attack(_):
        body = {"name": "main.other.bomb", "location": log.location}
        answer = service.client.post(f"{service.api}/tables/register", json=body)
        return answer.status_code, answer.json()["code"], why in answer.json()["detail"]

    with attacked(service, attack) as measured:
        measured.check(grown_mib=300)
    assert set(measured.answers) == {(422, "broken-log", True)}


def test_a_checkpoint_at_which_its_reader_ends(service):
    """Arrow ends the process that reads this one."""
    log = DeltaLog(warehouse(service) / "ending")
    shutil.copy(DAMAGED, log.path(7, "checkpoint.parquet"))

    def attack(_):
        body = {"name": "main.other.ending", "location": log.location}
        answer = service.client.post(f"{service.api}/tables/register", json=body)
        return answer.status_code, answer.json()["code"]

    with attacked(service, attack) as measured:
        measured.check(grown_mib=100)
    assert set(measured.answers) == {(422, "broken-log")}


def test_one_that_is_as_large_as_it_seems(service):
    """Files with statistics of their own and partitions that many share, in a usual file."""
    log = DeltaLog(warehouse(service) / "usual")
    rows = [line(PROTOCOL), line(metadata())]
    rows += [
        line(add(f"x={number % 50}/{number:032x}", tags={"t": f"tag {number % 7}"}))
        for number in range(20_000)
    ]
    write_rows(log.folder / f"{7:020}.checkpoint.parquet", rows, row_group_size=5_000)
    body = {"name": "main.other.usual", "location": log.location}
    answer = service.client.post(f"{service.api}/tables/register", json=body)
    assert answer.status_code == 201
    assert answer.json()["num_files"] == 20_000
