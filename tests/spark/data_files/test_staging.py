"""The data files of a transaction: where they lie, what they say, and what failures leave."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import TaskContext
from pyspark.errors import PySparkException

from tests.spark.layouts import folder_of, layout_of
from tidegate.spark.columns.conform import conform
from tidegate.spark.data_files.direct_write import direct_sink
from tidegate.spark.data_files.staging import TransactionFolder
from tidegate.spark.storage.hadoop import HadoopStore
from tidegate.spark.tables.layout import new_folder
from tidegate.spark.write_options import AS_USUAL, FileOptions
from tidegate_protocol.log.paths import check, decode, encode

FOLDER = "tidegate_txn=id-1"


@pytest.fixture(params=["committer", "direct"])
def write(request, spark, table_folder):
    """Both ways in which Spark writes, the object stores' with their store, here on a disk."""

    def run(df, columns, *partition_by, options=AS_USUAL):
        layout = layout_of(columns, folder=table_folder, partition_by=partition_by)
        if request.param == "committer":
            return folder_of(layout, "id-1").write(conform(df, layout), options)
        return directly(layout, df, options)

    return run


def directly(layout, df, options=AS_USUAL):
    folder = TransactionFolder(layout, FOLDER, HadoopStore(df.sparkSession, layout.location))
    sink = direct_sink(df.sparkSession)
    assert sink is not None
    return folder.write_through(sink, conform(df, layout), options)


def below(folder: Path) -> set[str]:
    """Every file, without the checksums that Hadoop keeps beside those on a local disk."""
    return {
        str(Path(where, name).relative_to(folder))
        for where, _, names in os.walk(folder)
        for name in names
        if not name.endswith(".crc")
    }


def test_options_of_files_hold_for_both_ways(spark, write, table_folder):
    options = FileOptions(data_change=False, max_records=4, codec="gzip")
    written = write(spark.range(10).coalesce(1), "id bigint", options=options)
    assert sorted(msgspec.json.decode(add.stats)["numRecords"] for add in written.adds) == [2, 4, 4]
    for add in written.adds:
        footer = pq.read_metadata(table_folder / decode(add.path))
        assert footer.row_group(0).column(0).compression == "GZIP"
        assert not add.data_change


class TestPlaces:
    def test_files_lie_in_the_partitions_of_the_transactions_folder(
        self, spark, write, table_folder
    ):
        files = write(
            spark.sql("SELECT * FROM VALUES (1, 5), (2, 5), (3, 6) AS t(a, month)"),
            "month int, a int",
            "month",
        )
        assert files.rows == 3
        folders = {add.path.rpartition("/")[0] for add in files.adds}
        assert folders == {"tidegate_txn=id-1/month=5", "tidegate_txn=id-1/month=6"}
        assert {decode(add.path) for add in files.adds} == below(table_folder)
        for add in files.adds:
            check(add.path)
            path = table_folder / add.path
            assert add.size == path.stat().st_size
            assert add.modification_time == path.stat().st_mtime_ns // 10**6
            assert add.data_change
            assert pq.read_schema(path).names == ["a"]
            assert add.partition_values == {"month": add.path.partition("month=")[2][0]}
        assert files.size == sum(add.size for add in files.adds)

    def test_timestamps_are_64_bit_numbers(self, spark, write, table_folder):
        (add,) = write(spark.sql("SELECT TIMESTAMP'2024-01-01 00:00:00' a"), "a timestamp").adds
        schema = pq.ParquetFile(table_folder / add.path).schema
        assert schema.column(0).physical_type == "INT64"

    def test_any_thread_can_write(self, spark, write):
        """Spark ties a session to the thread that made it, which here is another one."""
        df = spark.range(4).selectExpr("CAST(id % 2 AS int) p", "id")
        with ThreadPoolExecutor(1) as pool:
            files = pool.submit(write, df, "p int, id bigint", "p").result()
        assert files.rows == 4

    @pytest.mark.parametrize("partition_by", [(), ("p",)])
    def test_no_rows_are_no_files(self, spark, write, table_folder, partition_by):
        df = spark.sql("SELECT 1 a, 2 p WHERE false")
        assert write(df, "a int, p int", *partition_by).adds == ()
        assert below(table_folder) == set()


class TestNames:
    def test_a_commit_that_names_a_file_of_the_folder_is_known_however_it_is_escaped(self):
        layout = layout_of("id bigint")
        name, other = (new_folder("10:00 a").partition("=")[2] for _ in range(2))
        folder = folder_of(layout, name)
        for path in (encode(f"{folder.name}/p=1/x"), f"{layout.location}/{folder.name}/x"):
            line = msgspec.json.encode({"add": {"path": path}})
            assert folder.is_named_by(b'{"commitInfo":{}}\n' + line + b"\n")
            assert not folder_of(layout, other).is_named_by(line)


VALUES = [
    ("tinyint", "CAST(-1 AS TINYINT)", "-1"),
    ("bigint", "5000000000", "5000000000"),
    ("float", "1.5F", "1.5"),
    ("double", "1.0E10D", "1.0E10"),
    ("double", "CAST('NaN' AS DOUBLE)", "NaN"),
    ("double", "CAST('-Infinity' AS DOUBLE)", "-Infinity"),
    ("decimal(9,3)", "1.5", "1.500"),
    ("boolean", "true", "true"),
    ("date", "DATE'0001-01-01'", "0001-01-01"),
    ("binary", "X'C3A4'", "ä"),
    ("string", "''", None),
    ("string", "CAST(null AS STRING)", None),
    ("int", "CAST(null AS INT)", None),
    ("string", "' '", " "),
    (
        "string",
        "'a/b=c%d e:f?g*h[i]{j}k^l~m+n#o&p,q'",
        "a/b=c%d e:f?g*h[i]{j}k^l~m+n#o&p,q",
    ),
    ("string", r"'\"\\'", '"\\'),
    ("string", "char(1)", "\x01"),
    ("string", "'äöü 漢字 🙂'", "äöü 漢字 🙂"),
    ("string", "'null'", "null"),
]
"""A type, what SQL calls a value of it, and the value's text in the log."""


class TestPartitionValues:
    def test_every_value_keeps_its_text(self, spark, write, table_folder):
        names = [f"p{number}" for number in range(len(VALUES))]
        types, values, texts = zip(*VALUES, strict=True)
        columns = ", ".join(map("{} {}".format, names, types))
        selected = ", ".join(map("{} {}".format, values, names))
        (add,) = write(spark.sql(f"SELECT 1 a, {selected}"), f"a int, {columns}", *names).adds
        assert add.partition_values == dict(zip(names, texts, strict=True))
        assert below(table_folder) == {decode(add.path)}
        assert add.path.isascii()

    def test_names_of_columns_are_escaped_like_values(self, spark, write, table_folder):
        df = spark.sql("SELECT 1 a, 2 `p %/ä`")
        (add,) = write(df, "a int, `p %/ä` int", "p %/ä").adds
        assert add.partition_values == {"p %/ä": "2"}
        assert below(table_folder) == {decode(add.path)}


def failing(batches, *, attempts):
    """Pass rows on, then fail in the first attempts of the task of the last partition."""
    yield from batches
    task = TaskContext.get()
    if task.partitionId() == 1 and task.attemptNumber() < attempts:
        # The other task ends first: one that ends after the job leaves a file for VACUUM.
        time.sleep(1)
        raise RuntimeError("the task fails after its rows")


class TestFailures:
    @pytest.mark.slow
    def test_a_repeated_task_leaves_one_copy_of_its_rows(self, spark, write, table_folder):
        df = spark.range(0, 1000, 1, 2).mapInArrow(
            lambda batches: failing(batches, attempts=1), "id bigint"
        )
        files = write(df, "id bigint")
        assert files.rows == 1000
        assert {decode(add.path) for add in files.adds} == below(table_folder)
        rows = pa.concat_tables(
            pq.read_table(table_folder / decode(add.path)) for add in files.adds
        )
        assert sorted(rows["id"].to_pylist()) == list(range(1000))

    @pytest.mark.slow
    def test_a_job_that_fails_for_good_shows_no_file(self, spark, write, table_folder):
        df = spark.range(0, 1000, 1, 2).mapInArrow(
            lambda batches: failing(batches, attempts=9), "id bigint"
        )
        with pytest.raises(PySparkException, match="the task fails after its rows"):
            write(df, "id bigint")
        assert below(table_folder) == set()

    def test_what_a_straggler_left_is_not_taken_for_a_result(self, spark, table_folder):
        layout = layout_of("id bigint", folder=table_folder)
        folder = folder_of(layout, "t")
        folder.write(conform(spark.range(3).coalesce(1), layout))
        (result,) = below(table_folder)
        attempt = Path(table_folder, folder.name, "_temporary/0/_temporary/attempt_1")
        late = attempt / "part-00000.parquet"
        late.parent.mkdir(parents=True)
        late.write_bytes((table_folder / result).read_bytes())
        assert [file.path for file in folder.committed()] == [result]

    def test_what_another_attempt_left_in_the_table_is_left_alone(self, spark, write, table_folder):
        other = table_folder / "tidegate_txn=id-1.0123456789abcdef" / "part-0.parquet"
        other.parent.mkdir()
        other.write_bytes(b"rows of another attempt")
        files = write(spark.range(3).coalesce(1), "id bigint")
        folder_of(layout_of("id bigint", folder=table_folder), "id-1").delete()
        assert below(table_folder) == {f"{other.parent.name}/{other.name}"}
        assert files.rows == 3
