"""Rows that deletion vectors name are no rows of the table, whichever way it is read."""

import pytest
from pyroaring import BitMap64
from pyspark.sql import functions as F

from tests.spark.reading.vectors import KINDS, VECTORS, delete, vector_of
from tests.spark.tables import rows
from tidegate.spark import UnsupportedTable
from tidegate.spark.deletion_vectors.files import write_vectors
from tidegate.spark.deletion_vectors.marking import marked
from tidegate.spark.read.rows import rows_of_files
from tidegate.spark.storage.opening import store_at
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.tables.places import FILE, POSITION


def layout_of(table):
    head = table.head()
    return TableLayout.of(name=table.name, location=table.location, metadata=head.metadata)


def plan_of(df):
    return df._jdf.queryExecution().optimizedPlan().toString()


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_storage_is_read(spark, create, source, kind):
    table = create("id bigint", **VECTORS)
    table.append(spark.range(100).coalesce(1))
    (file,) = table.scan().files
    delete(table, file, vector_of(table, [0, 7, 99], kind))
    kept = [(n,) for n in range(100) if n not in (0, 7, 99)]
    assert rows(table.read(spark)) == kept
    assert rows(source.read(table)) == kept


def test_the_past_has_none(spark, create, source):
    table = create("id bigint", **VECTORS)
    table.append(spark.range(100).coalesce(1))
    (file,) = table.scan().files
    delete(table, file, vector_of(table, [0, 7, 99]))
    assert rows(table.read(spark, version=1)) == [(n,) for n in range(100)]
    assert rows(source.read(table, version=1)) == [(n,) for n in range(100)]


def test_one_at_an_absolute_path_is_read(spark, create):
    """As others write them who clone a table."""
    table = create("id bigint", **VECTORS)
    table.append(spark.range(9).coalesce(1))
    (file,) = table.scan().files
    cloned = marked(file, vector_of(table, [0, 2], "p"))
    found = rows_of_files(spark, layout_of(table), [cloned])
    assert rows(found) == [(n,) for n in (1, *range(3, 9))]


def test_a_transaction_reads_so_too(spark, create):
    table = create("id bigint", **VECTORS)
    table.append(spark.range(4).coalesce(1))
    (file,) = table.scan().files
    delete(table, file, vector_of(table, [1]))
    with table.transaction() as txn:
        assert rows(txn.read(spark, "id < 3")) == [(0,), (2,)]
        assert rows(table.read(spark)) == [(0,), (2,), (3,)]


def test_only_the_files_own_rows_go(spark, create, source):
    table = create("id bigint, p int", "p", **VECTORS)
    for start in (0, 1000):
        df = spark.range(start, start + 200).selectExpr("id", "cast(id % 2 as int) p")
        table.append(df.coalesce(1))
    files = table.scan().files
    assert len(files) == 4
    gone = set()
    for n, file in enumerate(files[:3]):
        located = rows_of_files(spark, layout_of(table), [file], located=True)
        places = {row[POSITION]: row["id"] for row in located.collect()}
        chosen = [n, 10 + n, 99]
        gone |= {places[position] for position in chosen}
        delete(table, file, vector_of(table, chosen))
    kept = [(n, n % 2) for n in (*range(200), *range(1000, 1200)) if n not in gone]
    assert len(kept) == 391
    assert rows(table.read(spark)) == kept
    assert rows(source.read(table)) == kept
    assert rows(table.read(spark, "p = 1 AND id > 50")) == [
        row for row in kept if row[1] == 1 and row[0] > 50
    ]


def test_places_say_where_a_row_is(spark, create):
    table = create("id bigint, p int", "p", **VECTORS)
    table.append(spark.sql("SELECT id, 1 p FROM range(50)").coalesce(1))
    table.append(spark.sql("SELECT id, 2 p FROM range(50, 90)").coalesce(1))
    one, other = sorted(table.scan().files, key=lambda file: file.partition_values["p"])
    delete(table, other, vector_of(table, [0, 3]))
    layout = layout_of(table)
    files = sorted(table.scan().files, key=lambda file: file.partition_values["p"])
    found = rows_of_files(spark, layout, files, located=True)
    assert found.columns == ["id", "p", FILE, POSITION]
    expected = [(n, 1, 0, n) for n in range(50)]
    expected += [(50 + n, 2, 1, n) for n in range(40) if n not in (0, 3)]
    assert rows(found) == expected
    assert rows_of_files(spark, layout, [], located=True).columns == found.columns
    assert one.deletion_vector is None


def test_positions_count_what_filters_pass_over(spark, create, source, tmp_path):
    """Row groups and pages that Parquet's own statistics exclude have positions, too."""
    table = create("id bigint", **VECTORS)
    spark_rows = spark.range(60_000).coalesce(1)
    spark.conf.set("parquet.block.size", 64 * 1024)
    try:
        table.append(spark_rows)
    finally:
        spark.conf.unset("parquet.block.size")
    (file,) = table.scan().files
    gone = {*range(3, 60_000, 1000), 59_999}
    delete(table, file, vector_of(table, gone))
    expected = [n for n in range(45_000, 60_000) if n not in gone]
    df = table.read(spark).where("id >= 45000").agg(F.count("id"), F.sum("id"))
    assert rows(df) == [(len(expected), sum(expected))]
    assert source.read(table).agg(F.sum("id")).first()[0] == sum(range(60_000)) - sum(gone)


def test_dense_and_large_positions(spark, create):
    table = create("id bigint", **VECTORS)
    table.append(spark.range(30_000).coalesce(1))
    (file,) = table.scan().files
    gone = set(range(30_000)) - {0, 4095, 4096, 8191, 29_999}
    delete(table, file, vector_of(table, gone | {2**41}))
    assert rows(table.read(spark)) == [(0,), (4095,), (4096,), (8191,), (29_999,)]


def test_filters_are_pushed_below_and_no_row_goes_through_python(spark, create):
    table = create("id bigint, s string", **VECTORS)
    table.append(spark.sql("SELECT id, 'x' s FROM range(10)").coalesce(1))
    (file,) = table.scan().files
    delete(table, file, vector_of(table, [1]))
    df = table.read(spark, "id > 5").select("id")
    plan = df._jdf.queryExecution().executedPlan().toString()
    assert "GreaterThan(id,5)" in plan
    assert "s#" not in plan.split("FileScan")[1].split("\n")[0]
    assert "Python" not in plan
    assert "LocalTableScan" in plan
    assert "BroadcastHashJoin" in plan


def test_files_without_one_are_read_as_ever(spark, create):
    table = create("id bigint", **VECTORS)
    table.append(spark.range(10).coalesce(1))
    assert "Join" not in plan_of(table.read(spark))


def test_a_broken_vector_is_refused_before_a_job(spark, create, source):
    table = create("id bigint", **VECTORS)
    table.append(spark.range(10).coalesce(1))
    (file,) = table.scan().files
    vector = vector_of(table, [1])
    broken = type(vector)(
        storage_type="u",
        path_or_inline_dv=vector.path_or_inline_dv,
        offset=1,
        size_in_bytes=vector.size_in_bytes,
        cardinality=1,
    )
    delete(table, file, broken)
    with pytest.raises(UnsupportedTable, match="checksum"):
        table.read(spark)


def test_on_s3_too(s3_session, s3_lake, s3_source):
    from pyspark.sql.types import StructType

    table = s3_lake.create_table(
        "main.s3.vectors",
        schema=StructType.fromDDL("id bigint, p int"),
        partition_by="p",
        properties=VECTORS,
    )
    table.append(s3_session.sql("SELECT id, 1 p FROM range(20)").coalesce(1))
    (file,) = table.scan().files
    store = store_at(table.location, s3_session)
    (vector,) = write_vectors([BitMap64([0, 5])], store)
    delete(table, file, vector)
    kept = [(n, 1) for n in range(20) if n not in (0, 5)]
    assert rows(table.read(s3_session)) == kept
    assert rows(s3_source.read(table)) == kept
