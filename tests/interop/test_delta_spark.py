"""Stock Delta Spark writes to a plain table past the service, alone and while others go through
it. Its jars come from Maven Central; without them, these tests are skipped."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.interop.tables import append, check_agreement, new_table, replace, rows_of, theirs
from tidegate import ConcurrentAppendException

ROWS = "SELECT writer, n FROM {table} ORDER BY writer, n"
CHANGES = (
    "UPDATE {table} SET n = 50 WHERE writer = 'theirs' AND n = 5",
    "DELETE FROM {table} WHERE writer = 'theirs' AND n < 2",
    "MERGE INTO {table} t USING (SELECT * FROM VALUES ('theirs', 3L, 3), ('theirs', 90L, 2) "
    "AS v(writer, n, part)) s ON t.writer = 'theirs' AND s.n = t.n "
    "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *",
    "OPTIMIZE {table} WHERE writer = 'theirs'",
)
"""Each of one partition: Delta's own checker refuses what others might have added to."""


def values(writer, numbers):
    return ", ".join(f"('{writer}', {n}, {n % 4})" for n in numbers)


def insert(spark, table, writer, numbers):
    spark.sql(f"INSERT INTO {{table}} VALUES {values(writer, numbers)}", table)


def test_its_deletion_vectors_are_judged_and_kept(spark, lake):
    table = new_table(lake, **{"delta.enableDeletionVectors": "true"})
    append(table, "ours", range(100))
    txn = table.transaction()
    assert len(txn.filter_files("writer = 'ours'")) == 1
    spark.sql("DELETE FROM {table} WHERE writer = 'ours' AND n = 7", table)
    with pytest.raises(ConcurrentAppendException):
        replace(txn, table, "ours", [1])
    append(table, "ours", [100])
    (with_vector,) = [file for file in table.scan().files if file.deletion_vector is not None]
    assert with_vector.deletion_vector.cardinality == 1
    kept = [("ours", n) for n in range(101) if n != 7]
    assert spark.sql(ROWS, table) == kept
    replace(table.transaction(), table, "ours", [1])
    assert spark.sql(ROWS, table) == [("ours", 1)]
    check_agreement(table)


def test_its_change_data_is_no_data(spark, lake):
    table = new_table(lake, **{"delta.enableChangeDataFeed": "true"})
    append(table, "ours", [1, 2])
    spark.sql("UPDATE {table} SET n = 20 WHERE n = 2", table)
    append(table, "ours", [3])
    changes = spark.sql(
        f"SELECT _change_type, n, _commit_version FROM table_changes_by_path"
        f"('{table.location}', 1) ORDER BY _commit_version, _change_type, n",
        table,
    )
    assert changes == [
        ("insert", 1, 1),
        ("insert", 2, 1),
        ("update_postimage", 20, 2),
        ("update_preimage", 2, 2),
        ("insert", 3, 3),
    ]
    assert rows_of(theirs(table)) == [("ours", n) for n in (1, 3, 20)]
    check_agreement(table)


def test_nothing_is_lost_among_writers_of_both_kinds(spark, table):
    ours, appends = 3, 4

    def through(writer):
        for n in range(appends):
            append(table, f"ours-{writer}", [n])

    def past():
        for n in range(appends):
            insert(spark, table, "theirs", [2 * n, 2 * n + 1])
        for statement in CHANGES:
            spark.sql(statement, table)

    with ThreadPoolExecutor(ours + 1) as pool:
        work = [pool.submit(through, n) for n in range(ours)] + [pool.submit(past)]
        for done in work:
            done.result()
    append(table, "ours-0", [1000])
    expected = [(f"ours-{writer}", n) for writer in range(ours) for n in range(appends)]
    expected += [("ours-0", 1000), *(("theirs", n) for n in (2, 4, 6, 7, 50, 90))]
    assert rows_of(theirs(table)) == spark.sql(ROWS, table) == sorted(expected)
    assert sum(commit.foreign for commit in table.history()) == appends + len(CHANGES)
    check_agreement(table)
