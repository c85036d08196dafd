"""Predicates as their sessions read them, and the files that are looked at for them."""

from datetime import UTC, datetime

import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from tests.spark.tables import overtake, rows
from tidegate import ConcurrentAppendException, InvalidRequest
from tidegate.spark.expressions.errors import InvalidCommand
from tidegate.transaction_handle import TransactionHandle

ZONE = "spark.sql.session.timeZone"
LONG = f"a IN ({', '.join(map(str, range(10**17, 10**17 + 3_500)))}, 1)"
DEEP = f"{'NOT (' * 30}a > 1{')' * 30}"


@pytest.fixture
def far(session):
    session.conf.set(ZONE, "America/New_York")
    return session


@pytest.fixture
def morning(session):
    """A session in a zone where the time is between six and seven, far from midnight, and that of
    another zone, where the evening before has not ended."""
    hours = (6 - datetime.now(UTC).hour + 10) % 24 - 10
    zones = [f"{hour:+03d}:00" for hour in (hours, hours - 8)]
    session.conf.set(ZONE, zones[0])
    return session, zones[1]


@pytest.fixture
def days(spark, create):
    """Rows of two days, at noon UTC, in files of their own."""
    table = create("day date, at timestamp, updated bigint", "day")
    for day in ("2026-01-01", "2026-01-02"):
        one = f"SELECT DATE'{day}' day, TIMESTAMP'{day} 12:00:00+00:00' at, 1L updated"
        table.append(spark.sql(one))
    return table


@pytest.mark.parametrize(
    "where",
    [
        "day = '2026-01-02'",
        "day > '2026-01-01 05:00:00'",
        "year(day) = 2026 AND dayofmonth(day) = 2",
        "at > '2026-01-02 00:00:00'",
        "to_date(at) = '2026-01-02'",
        "at BETWEEN '2026-01-02' AND '2026-01-03'",
    ],
)
def test_one_file_is_looked_at_in_any_zone(far, days, where):
    found = days.read(far, where)
    assert len(found.inputFiles()) == 1
    assert found.count() == 1


@pytest.mark.parametrize("where", ["day = '2026-01-01'", "at < '2026-01-02' AND updated = 1"])
def test_commands_of_two_days_both_land(far, lake, days, where):
    mine, other = lake.table(days.id), lake.table(days.id)
    overtake(mine, lambda: other.delete("day = '2026-01-02'", spark=far))
    assert mine.delete(where, spark=far).receipt.rebased_over == 1


def test_the_hour_that_there_is_twice(far, create):
    table = create("at timestamp")
    hours = ["2024-11-03 05:30:00", "2024-11-03 06:30:00"]
    for hour in hours:
        table.append(far.sql(f"SELECT TIMESTAMP'{hour}+00:00' at"))
    for hour in hours:
        where = f"at = TIMESTAMP'{hour}+00:00'"
        found = table.read(far, where)
        assert (found.count(), len(found.inputFiles())) == (1, 1)
        assert table.delete(where, spark=far).deleted == 1


@pytest.mark.parametrize(
    "where",
    [
        LONG,
        DEEP,
        "a = 1 -- the first",
        "a /* of */ = 1",
        "a between 0 and 1",
        "a = 1 AND aggregate(array(a), 0L, (x, y) -> x + y) = 1",
    ],
    ids=["long", "deep", "line", "comment", "between", "lambda"],
)
def test_what_the_service_would_not_read(spark, create, where):
    table = create("a bigint, b int")
    table.append(spark.sql("SELECT * FROM VALUES (1L, 1), (NULL, 2), (500L, 3) AS t(a, b)"))
    expected = [(500, 3)] if where == DEEP else [(1, 1)]
    with table.transaction() as txn:
        assert rows(txn.read(spark, where)) == expected
    assert rows(table.read(spark, where)) == expected
    table.overwrite(spark.createDataFrame(expected, "a bigint, b int"), replace_where=where)
    assert table.delete(where, spark=spark).deleted == 1


@pytest.mark.parametrize("where", ["a = 1 AND", "a = 1 b", "", "sum(a) = 1"])
def test_what_is_no_condition(spark, create, where):
    table = create("a int")
    with pytest.raises(
        InvalidRequest, match=r"predicate[\s\S]*Next: give a condition of Spark SQL"
    ):
        table.read(spark, where)
    with pytest.raises(InvalidRequest, match="predicate"):
        table.overwrite(spark.range(1).select(F.lit(1).alias("a")), replace_where=where)


@pytest.mark.parametrize("word", ["'today'", "DATE'today'", "current_date()"])
@pytest.mark.parametrize("command", ["delete", "overwrite"])
def test_words_for_times_are_read_once(morning, create, monkeypatch, command, word):
    """A zone that changes while the command runs stands for midnight."""
    session, evening = morning
    table = create("day date, a int", "day")
    days = session.sql("SELECT DATE'today' day, 1 a UNION ALL SELECT DATE'yesterday', 1")
    table.append(days)
    today, yesterday = days.collect()
    asked = TransactionHandle.filter_files

    def filter_files(*arguments):
        found = asked(*arguments)
        session.conf.set(ZONE, evening)
        return found

    monkeypatch.setattr(TransactionHandle, "filter_files", filter_files)
    if command == "delete":
        table.delete(f"day = {word}", spark=session)
        assert rows(table.read(session)) == [yesterday]
    else:
        new = session.createDataFrame([(today.day, 2)], "day date, a int")
        table.overwrite(new, replace_where=f"day = {word}")
        assert rows(table.read(session)) == [yesterday, (today.day, 2)]


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_words_that_are_cast_to_times(morning, create, ansi):
    session, _ = morning
    session.conf.set("spark.sql.ansi.enabled", ansi)
    table = create("day date, at timestamp, k int", "day")
    for day in ("today", "tomorrow"):
        table.append(session.sql(f"SELECT DATE'{day}' day, TIMESTAMP'{day}' at, 1 k"))
    for where in (
        "day > 'yesterday' AND k = 1",
        "at BETWEEN 'today' AND 'tomorrow'",
        "day >= nvl(NULL, 'today')",
        "day >= try_cast('today' AS DATE)",
        "NOT coalesce(at < nvl(NULL, 'today'), false)",
    ):
        assert table.read(session, where).count() == 2
    assert table.delete("NOT coalesce(at >= nvl(NULL, 'today'), false)", spark=session).deleted == 0
    source = session.sql("SELECT 1 k").alias("s")
    merged = table.merge(source, "t.day = 'today' AND t.k = s.k", alias="t")
    assert merged.whenNotMatchedInsert(values={"k": "9"}).execute().inserted == 0
    new = session.sql("SELECT DATE'today' day, TIMESTAMP'today' at, 2 k")
    table.overwrite(new, replace_where="day < 'tomorrow'")
    assert sorted(row.k for row in table.read(session).collect()) == [1, 2]
    assert table.delete("at < 'tomorrow'", spark=session).deleted == 1


def test_what_cannot_be_computed_where_no_row_needs_it(spark, create):
    table = create("p int, a int", "p")
    table.append(spark.sql("SELECT 1 p, 1 a"))
    for value in ("1/0", "CAST('x' AS INT)"):
        assert table.delete(f"p = 2 AND a = {value}", spark=spark).deleted == 0


def test_functions_that_are_written_in_sql(session, create):
    session.sql("CREATE TEMPORARY FUNCTION above(x INT) RETURNS BOOLEAN RETURN x > 1")
    table = create("a int")
    table.append(session.sql("SELECT explode(array(1, 2)) a"))
    assert rows(table.read(session, "above(a)")) == [(2,)]
    with pytest.raises(InvalidRequest, match="SQL functions"):
        table.overwrite(table.read(session), replace_where="above(a)")
    merging = table.merge(session.sql("SELECT 2 b").alias("s"), "a = b AND above(a)")
    for command in (
        lambda: table.delete("above(a)", spark=session),
        lambda: table.update({"a": "0"}, "above(a)", spark=session),
        merging.whenMatchedDelete().execute,
    ):
        with pytest.raises(InvalidCommand, match="SQL functions"):
            command()
    assert table.version == 1


def test_columns_that_only_spark_has(spark, create):
    table = create("a int")
    table.append(spark.sql("SELECT 1 a"))
    assert table.read(spark, "_metadata.file_size > 0").count() == 1


def test_a_list_of_many_days_reads_their_range(session, lake, create):
    table = create("day date, a int", "day")
    days = "SELECT explode(sequence(DATE'2025-01-01', DATE'2026-01-01')) day"
    listed = ", ".join(f"'{row.day}'" for row in session.sql(days).collect())
    mine, other = lake.table(table.id), lake.table(table.id)
    overtake(mine, lambda: other.append(session.sql("SELECT DATE'2026-01-02' day, 1 a")))
    mine.overwrite(session.sql(f"{days}, 2 a LIMIT 3"), replace_where=f"day IN ({listed})")
    overtake(mine, lambda: other.append(session.sql("SELECT DATE'2025-07-01' day, 1 a")))
    with pytest.raises(ConcurrentAppendException):
        mine.overwrite(session.sql(f"{days}, 2 a LIMIT 3"), replace_where=f"day IN ({listed})")


def test_predicates_of_many_terms(spark, create):
    table = create("a int, s string")
    table.append(spark.sql("SELECT 1 a, '\u6f6e' s"))
    many = " OR ".join(f"a = {a}" for a in range(1, 3500))
    assert table.read(spark, many).count() == 1
    wide = ", ".join(f"'{chr(0x4E00 + n) * 30}'" for n in range(550))
    assert table.read(spark, f"s NOT IN ({wide}) AND s NOT IN ({wide}, 'x')").count() == 1


def test_times_without_a_day(morning, create):
    """They are of the day of the job, which a read's may be later than its files are asked for."""
    session, _ = morning
    table = create("at timestamp, a int")
    table.append(session.sql("SELECT TIMESTAMP'06:00' - INTERVAL '1' HOUR at, 1 a"))
    with table.transaction() as txn:
        assert txn.read(session, "at < '06:00' AND a = 1").count() == 1
        assert "reads: rows where (`a` = 1)" in txn.explain("WRITE")
    assert table.delete("at < '06:00' AND at > '04:00'", spark=session).deleted == 1


@pytest.mark.parametrize("day", ["'today'", "nvl(NULL, 'today')", "current_date()"])
def test_times_of_others_rows(morning, create, day):
    session, _ = morning
    session.conf.set("spark.sql.ansi.enabled", "false")
    table = create("k int")
    table.append(session.sql("SELECT 1 k"))
    session.sql("SELECT 1 k, DATE'today' day").createOrReplaceTempView("others")
    exists = f"EXISTS (SELECT 1 FROM others o WHERE o.k = {table.name.split('.')[-1]}.k AND "
    with pytest.raises(InvalidCommand, match="current time"):
        table.delete(f"{exists} o.day = {day})", spark=session)
    assert table.delete(f"{exists} o.day = DATE'today')", spark=session).deleted == 1


def test_rows_are_replaced_where_columns_are_new(spark, create):
    table = create("a int, b int")
    table.append(spark.sql("SELECT * FROM VALUES (1, 1), (2, 2) AS t(a, b)").coalesce(1))
    new = spark.sql("SELECT 1 a, 3 b, 'x' note, named_struct('y', 1) more")
    table.overwrite(new, replace_where="a = 1", mergeSchema=True)
    assert rows(table.read(spark)) == [(1, 3, "x", (1,)), (2, 2, None, None)]
    with pytest.raises(InvalidRequest, match="later"):
        table.overwrite(new.selectExpr("*", "1 later"), replace_where="later = 1", mergeSchema=True)


def test_rows_are_replaced_where_columns_change_places(spark, create):
    table = create("a int, b int")
    table.append(spark.sql("SELECT * FROM VALUES (1, 10), (2, 20) AS t(a, b)").coalesce(1))
    with table.transaction() as txn:
        txn.update_metadata(schema=StructType.fromDDL("b int, a int"))
        table.overwrite(spark.sql("SELECT 1 a, 11 b"), transaction=txn, replace_where="a = 1")
    assert rows(table.read(spark).select("a", "b")) == [(1, 11), (2, 20)]


def test_the_old_name_of_a_column(spark, create):
    table = create("a int")
    table.append(spark.sql("SELECT 1 a"))
    alter = table.alter(spark=spark)
    alter.set_properties({"delta.columnMapping.mode": "name"})
    alter.rename_column("a", "b")
    assert table.read(spark, "b = 1").count() == 1
    with pytest.raises(InvalidRequest, match="cannot be evaluated"):
        table.read(spark, "a = 1")
