"""Sessions that pass over files that cannot be read: rows that are written again stay."""

import pytest

from tests.spark.tables import data_files, folder_of, rows
from tidegate.spark import StorageError
from tidegate_protocol.log.codec import with_fields

ROWS = [(number, number) for number in range(10)]


def rewritten(table, spark):
    with table.transaction() as txn:
        even = table.read(spark).where("v % 2 = 0")
        return table.overwrite(even.coalesce(1), transaction=txn)


COMMANDS = {
    "a transaction's read": rewritten,
    "update": lambda table, spark: table.update({"v": "v + 1"}, spark=spark),
    "delete": lambda table, spark: table.delete("v % 2 = 1", spark=spark),
    "merge": lambda table, spark: (
        table.merge(spark.range(3).selectExpr("int(id) AS id").alias("s"), "t.id = s.id", alias="t")
        .whenMatchedDelete()
        .whenNotMatchedBySourceUpdate(set={"v": "0"})
        .execute()
    ),
    "replace_where": lambda table, spark: table.overwrite(
        spark.range(1).selectExpr("1 AS id", "1 AS v"), replace_where="v % 2 = 1"
    ),
}


@pytest.fixture
def forgiving(spark):
    session = spark.newSession()
    session.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    session.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    return session


@pytest.mark.parametrize(
    ("what", "command"),
    [
        *(("broken", command) for command in COMMANDS),
        ("gone", "update"),
        ("gone", "a transaction's read"),
    ],
)
def test_a_file_that_cannot_be_read_for_a_while_keeps_its_rows(
    spark, forgiving, create, what, command
):
    table = create("id int, v int")
    table.append(spark.range(10).selectExpr("int(id) AS id", "int(id) AS v").coalesce(1))
    (name,) = data_files(table)
    file = folder_of(table) / name
    good = file.read_bytes()
    third = len(good) // 3
    if what == "gone":
        file.rename(file.with_suffix(".elsewhere"))
    else:
        file.write_bytes(good[:4] + b"\0" * third + good[4 + third :])
    with pytest.raises(Exception, match=r"(?i)file"):
        COMMANDS[command](table, forgiving)
    file.write_bytes(good)
    assert rows(table.read(spark)) == ROWS
    assert table.version == 1
    assert COMMANDS[command](table, forgiving)
    assert rows(table.read(spark)) != ROWS


def test_an_empty_file_keeps_its_rows(spark, create):
    """Spark's reader passes over it without a word."""
    table = create("id int, v int")
    table.append(spark.range(10).selectExpr("int(id) AS id", "int(id) AS v").coalesce(1))
    (name,) = data_files(table)
    file = folder_of(table) / name
    good = file.read_bytes()
    file.write_bytes(b"")
    with pytest.raises(StorageError, match="expected 10 rows in 1 files, by the log, found 0"):
        table.update({"v": "v + 1"}, spark=spark)
    assert data_files(table) == {name}
    file.write_bytes(good)
    assert rows(table.read(spark)) == ROWS
    assert table.version == 1


def merge(spark, table, *keys):
    source = spark.createDataFrame([(key, 0) for key in keys], "id int, v int").alias("s")
    return table.merge(source, "t.id = s.id", alias="t").whenMatchedUpdateAll()


COUNTED = {
    "merge": lambda spark, table: merge(spark, table, 3).execute(),
    "merge that inserts": lambda spark, table: (
        merge(spark, table, 3, 30, 31).whenNotMatchedInsertAll().execute()
    ),
    "delete": lambda spark, table: table.delete("v = 3", spark=spark),
    "delete of so many": lambda spark, table: table.delete("v < 8", spark=spark),
    "update": lambda spark, table: table.update({"v": "v + 1"}, "v = 3", spark=spark),
}
WAYS = {
    "copied": {},
    "fed": {"delta.enableChangeDataFeed": "true"},
    "marked": {"delta.enableDeletionVectors": "true"},
}
CASES = [(each, way, count) for each in COUNTED for way in ("copied", "fed") for count in (8, 12)]


@pytest.mark.parametrize(
    ("command", "way", "counted"), [*CASES, ("delete of so many", "marked", 8)]
)
def test_a_log_that_counts_other_rows_is_not_gone_by(spark, create, command, way, counted):
    """Rows that it leaves out would be lost, and a mark of an identity column would not move."""
    table = create("id int, v int", **WAYS[way])
    table.append(spark.range(10).selectExpr("int(id) AS id", "int(id) AS v").coalesce(1))
    (file,) = table.scan().files
    with table.transaction() as txn:
        stats = f'{{"numRecords":{counted},"tightBounds":true}}'
        txn.add([with_fields(file, {"stats": stats})])
        txn.commit("COMPUTE STATS")
    files = data_files(table)
    with pytest.raises(StorageError, match=rf"expected {counted} rows in .*, by the log, found"):
        COUNTED[command](spark, table)
    assert (table.version, rows(table.read(spark))) == (2, ROWS)
    assert data_files(table) == files
    table.compute_statistics(spark=spark)
    COUNTED[command](spark, table)
    assert table.version == 4
