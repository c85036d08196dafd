"""Tables that the client's OPTIMIZE has rearranged, as stock Delta Spark reads them: rows, their
ids, and what the history says, beside Delta's own."""

from tests.interop.tables import append, new_table

ROWS = "SELECT writer, n FROM {table} ORDER BY writer, n"
IDS = (
    "SELECT writer, n, _metadata.row_id, _metadata.row_commit_version FROM {table} "
    "ORDER BY writer, n"
)


def filled(lake, **properties):
    table = new_table(lake, **properties)
    for start in range(0, 40, 10):
        append(table, "a", range(start, start + 10))
        append(table, "b", range(start, start + 5))
    return table


def test_rows_and_their_ids_are_the_same(spark, ours, lake):
    columns = ["n", "part"]
    table = filled(lake, **{"delta.enableRowTracking": "true"})
    before = spark.sql(IDS, table)
    assert len({row[2] for row in before}) == 60
    table.optimize("writer = 'a'", z_order_by=columns, spark=ours)
    assert spark.sql(IDS, table) == before
    append(table, "a", [77])
    table.optimize(z_order_by=columns, spark=ours)
    after = [row for row in spark.sql(IDS, table) if row[1] != 77]
    assert after == before
    spark.sql("DELETE FROM {table} WHERE n % 3 = 0", table)
    assert [row for row in spark.sql(IDS, table) if row[1] != 77] == [
        row for row in before if row[1] % 3
    ]


def test_history_is_told_as_delta_does(spark, ours, lake):
    own, stock = filled(lake), filled(lake)
    own.optimize("writer = 'a'", z_order_by=["n", "part"], spark=ours)
    spark.sql("OPTIMIZE {table} WHERE writer = 'a' ZORDER BY (n, part)", stock)
    assert history(spark, own) == history(spark, stock)
    assert spark.sql(ROWS, own) == spark.sql(ROWS, stock)
    assert len(live_files(own)) == len(live_files(stock))


def test_deletion_vectors_are_purged_as_by_delta(spark, ours, lake):
    tables = [filled(lake, **{"delta.enableDeletionVectors": "true"}) for _ in range(2)]
    for table in tables:
        spark.sql("DELETE FROM {table} WHERE n % 4 = 1", table)
        live_files(table)
    own, stock = tables
    own.reorg(spark=ours)
    spark.sql("REORG TABLE {table} APPLY (PURGE)", stock)
    assert history(spark, own) == history(spark, stock)
    assert spark.sql(ROWS, own) == spark.sql(ROWS, stock)
    assert len(live_files(own)) == len(live_files(stock))
    assert not any(file.deletion_vector for file in own.scan().files)


def live_files(table):
    """The files, by a service that has learned of what was committed past it."""
    table.transaction().conflict_check()
    return table.scan().files


def history(spark, table):
    """Operation, isolation level, parameters and names of metrics of the latest commit."""
    (row,) = spark.sql("DESCRIBE HISTORY {table} LIMIT 1", table)
    operation, parameters, level, metrics = row[4], row[5], row[10], row[12]
    return operation, level, parameters, sorted(metrics)
