"""Row ids that the client's commands give and keep, as stock Delta Spark reads them, beside its own
commands."""

import tidegate
from tests.interop.tables import append, new_table

IDS = (
    "SELECT writer, n, _metadata.row_id, _metadata.row_commit_version FROM {table} "
    "ORDER BY writer, n"
)
ON = {"delta.enableRowTracking": "true"}


def filled(lake, **properties):
    """A table of three files: 0 to 9 and 20 to 24 of `a`, 0 to 4 of `b`."""
    table = new_table(lake, **properties)
    append(table, "a", range(10))
    append(table, "b", range(5))
    append(table, "a", range(20, 25))
    return table


def test_ids_of_a_table_that_had_none(spark, ours, lake):
    own, stock = filled(lake), filled(lake)
    own.alter(spark=ours).set_properties(ON)
    spark.sql("ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')", stock)
    told = history(spark, own, 3)
    assert told[:2] == history(spark, stock, 2)
    assert told[2][0] == "UPGRADE PROTOCOL"
    before = spark.sql(IDS, own)
    assert {row[2] for row in before} == set(range(20))
    spark.sql("DELETE FROM {table} WHERE n % 3 = 0", own)
    assert spark.sql(IDS, own) == [row for row in before if row[1] % 3]


UPDATE = "UPDATE {table} SET part = 9 WHERE n % 4 = 1"
DELETE = "DELETE FROM {table} WHERE n IN (0, 22)"
MERGE = (
    "MERGE INTO {table} AS t "
    "USING (SELECT 'a' AS writer, id AS n, 7 AS part FROM range(8, 12)) AS s "
    "ON t.writer = s.writer AND t.n = s.n WHEN MATCHED AND t.n = 8 THEN DELETE "
    "WHEN MATCHED THEN UPDATE SET part = s.part "
    "WHEN NOT MATCHED THEN INSERT (writer, n, part) VALUES (s.writer, s.n, s.part)"
)


def test_ids_of_rows_that_commands_write_again(spark, ours, lake):
    """Ids of new rows are whichever come next; all others are those that Delta has."""
    own, stock = (filled(lake, **ON) for _ in range(2))
    for statement in (UPDATE, DELETE, MERGE):
        tidegate.sql(ours, statement.format(table=own.name), lake=lake)
        spark.sql(statement, stock)
    all_of_own = spark.sql(IDS, own)
    old = [row for row in all_of_own if row[1] not in (10, 11)]
    assert old == [row for row in spark.sql(IDS, stock) if row[1] not in (10, 11)]
    found = [row[2] for row in all_of_own]
    assert len(set(found)) == len(found) == 18
    own.optimize(spark=ours)
    before = spark.sql(IDS, own)
    assert [row[2] for row in before] == found
    # What Delta makes of files that the client wrote.
    spark.sql("UPDATE {table} SET part = 1 WHERE n = 3", own)
    assert [row[:3] for row in spark.sql(IDS, own)] == [row[:3] for row in before]


def history(spark, table, commits):
    """Operation, isolation level and parameters of the latest commits."""
    found = spark.sql(f"DESCRIBE HISTORY {{table}} LIMIT {commits}", table)
    return [(row[4], row[10], row[5]) for row in found]
