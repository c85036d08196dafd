"""Checkpoints whose lists have more values than anyone should make objects of at once."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.service.tables.delta_logs import DeltaLog
from tidegate_service.core.ports.store.storage import UnreadableFile
from tidegate_service.storage import ObjectStorage
from tidegate_service.storage.checkpoints.parts import VALUE_BYTES
from tidegate_service.storage.limits import CHECKPOINT_LIMITS, CheckpointLimits, StorageLimits

pytestmark = pytest.mark.anyio


@pytest.fixture
def log(tmp_path):
    return DeltaLog(tmp_path / "t")


def files(count: int, foo: pa.Array) -> pa.Table:
    one = pa.array([1] * count, pa.int64())
    nothing = pa.MapArray.from_arrays(
        [0] * (count + 1), pa.array([], "string"), pa.array([], "string")
    )
    fields = {
        "path": pa.array([f"f{number}" for number in range(count)]),
        "partitionValues": nothing,
        "size": one,
        "modificationTime": one,
        "foo": foo,
    }
    return pa.table({"add": pa.StructArray.from_arrays(list(fields.values()), list(fields))})


async def read(
    log: DeltaLog, table: pa.Table, *, store_schema: bool = False, **limits: int
) -> list:
    path = log.path(0, "checkpoint.parquet")
    pq.write_table(table, path, store_schema=store_schema, compression="zstd")
    most = StorageLimits(checkpoints=CheckpointLimits(**limits))
    found = ObjectStorage(log.table.parent.as_uri(), limits=most).log(log.location)
    return [action async for batch in found.checkpoint_actions(path.name) for action in batch]


def lists(count: int, values: pa.Array) -> pa.Array:
    each = len(values) // count
    return pa.ListArray.from_arrays([each * number for number in range(count + 1)], values)


def shown(action: object) -> object:
    return json.loads(action.raw)["add"]["foo"]


MOST = CHECKPOINT_LIMITS.part_values
MANY = MOST + 1


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1] * MANY, pa.int64()),
        pa.array([True] * MANY),
        pa.array(["a"] * MANY),
        pa.array([None] * MANY, pa.int8()),
        pa.array([{"x": 1, "y": 2}] * (MANY // 3 + 1)),
        pa.ListArray.from_arrays([0] * MANY + [1], pa.array([1])),
    ],
    ids=["int64", "bool", "text", "nulls", "structs", "empty lists"],
)
async def test_a_row_of_many_small_values_is_refused(log, values):
    with pytest.raises(UnreadableFile, match=r"a row of it has \d+ values in lists and maps"):
        await read(log, files(1, lists(1, values)))


async def test_as_many_as_may_be_come_as_they_are(log):
    (found,) = await read(log, files(1, lists(1, pa.array([1] * MOST))))
    assert shown(found) == [1] * MOST


async def test_what_values_take_is_counted_before_they_are_made(log):
    """As JSON they are two bytes each."""
    free = 50 * 500 * VALUE_BYTES
    table = files(51, lists(51, pa.array([1] * 51 * 500)))
    with pytest.raises(UnreadableFile, match="times as large"):
        await read(log, table, free_bytes=free, ratio=0)


async def test_all_lists_of_a_row_group_have_so_many_values_together(log):
    """Each of which takes its place while it is read, though it is in a dictionary."""
    both = pa.StructArray.from_arrays(
        [lists(10, pa.array(["a"] * 100)), lists(10, pa.array(["b"] * 100))], ["x", "y"]
    )
    with pytest.raises(UnreadableFile, match=r"its lists and maps have 2\d\d values"):
        await read(log, files(10, both), list_values=150)


@pytest.mark.parametrize("where", ["the file", "add", "add.foo"])
async def test_columns_of_one_name_are_refused(log, where):
    """Which of them a reader takes is its own choice."""
    twice = pa.StructArray.from_arrays([pa.array(["a"]), pa.array(["b"])], ["x", "x"])
    table = files(1, twice if where == "add.foo" else pa.array(["a"]))
    add = table.column("add").combine_chunks()
    if where == "the file":
        table = pa.Table.from_arrays([add, add], ["add", "add"])
    elif where == "add":
        names = [field.name for field in add.type]
        columns = [*add.flatten(), pa.array(["other"])]
        table = pa.table({"add": pa.StructArray.from_arrays(columns, [*names, "path"])})
    with pytest.raises(UnreadableFile, match=f"'{where}' has two columns named"):
        await read(log, table)


@pytest.mark.parametrize(
    ("foo", "why"),
    [
        ("," * 600_000, "more than 500000 values"),
        ("{" * 300_000, "more than 250000 objects"),
        ("a\0b", "NUL"),
    ],
    ids=["values", "objects", "NUL"],
)
async def test_rows_that_could_not_be_read_as_lines_are_refused(log, foo, why):
    """They are kept as lines: what is taken in here is read again from those."""
    with pytest.raises(UnreadableFile, match=why):
        await read(log, files(1, pa.array([foo])))


async def test_rows_of_many_bytes_and_few_values_are_read(log):
    (action,) = await read(log, files(1, pa.array(["x" * 600_000])))
    assert shown(action) == "x" * 600_000


@pytest.mark.parametrize("kind", ["large_list", "fixed_size_list", "in a list"])
async def test_what_the_file_says_that_its_lists_are(log, kind):
    """Three hundred values that share a megabyte are three hundred megabytes, whatever their list
    is called."""
    shared = pa.DictionaryArray.from_arrays(
        pa.array([0] * 300, pa.int32()), pa.array(["x" * 1024 * 1024])
    )
    if kind == "fixed_size_list":
        foo = pa.FixedSizeListArray.from_arrays(shared, 300)
    else:
        foo = pa.LargeListArray.from_arrays([0, 300], shared)
    if kind == "in a list":
        foo = pa.ListArray.from_arrays([0, 1], foo)
    with pytest.raises(UnreadableFile, match=r"'add\.foo' is '"):
        await read(log, files(1, foo), store_schema=True)
