"""Commands whose conditions ask for the current time, one instant for all of their jobs, or would
be true of other rows when they are asked again."""

import random

import pytest
from pyspark.sql import functions as F

from tests.spark.tables import actions, rows
from tidegate import InvalidRequest
from tidegate.spark import InvalidCommand

_DRAWN = "pmod(hash({}, current_timestamp()), 2) = 0"
"""True of other rows in each job that has a time of its own."""


@pytest.fixture
def numbers(spark, create, copied):
    """(id, v) = (0, 0) to (199, 0) in one file."""

    def make():
        table = create("id int, v int")
        table.append(spark.range(200).selectExpr("int(id) AS id", "0 AS v").coalesce(1))
        return table

    return copied(make)


def drawn(spark, table) -> int:
    return table.read(spark).where("v = 1").count()


def test_a_delete_counts_what_goes(spark, numbers):
    done = numbers.delete(_DRAWN.format("id"), spark=spark)
    left = numbers.read(spark).count()
    assert (done.deleted, done.metrics["numCopiedRows"]) == (200 - left, str(left))


def test_an_update_counts_what_changes(spark, numbers):
    done = numbers.update({"v": "1"}, _DRAWN.format("id"), spark=spark)
    assert 0 < done.updated == drawn(spark, numbers) < 200


@pytest.mark.parametrize("way", ["ON", "WHEN", "NOT MATCHED BY SOURCE"])
def test_a_merge_does_what_its_first_job_finds(spark, numbers, way):
    source = spark.range(100, 300).selectExpr("int(id) AS id").alias("s")
    condition = _DRAWN.format("t.id")
    on = f"t.id = s.id AND {condition}" if way == "ON" else "t.id = s.id"
    merge = numbers.merge(source, on, alias="t")
    if way == "NOT MATCHED BY SOURCE":
        merge = merge.whenNotMatchedBySourceUpdate(condition=condition, set={"v": "1"})
    else:
        when = F.expr(condition) if way == "WHEN" else None
        merge = merge.whenMatchedUpdate(condition=when, set={"v": "1"})
    done = merge.whenNotMatchedInsert(values={"id": "s.id", "v": "2"}).execute()
    found = numbers.read(spark)
    assert 0 < done.updated == drawn(spark, numbers) < 100
    assert done.inserted == found.where("v = 2").count() >= 100
    assert found.count() == 200 + done.inserted


def test_replace_where_copies_what_stays(spark, numbers):
    none = numbers.read(spark).where("id < 0")
    receipt = numbers.overwrite(none, replace_where=_DRAWN.format("id"))
    (commit,) = actions(numbers, receipt.version, "commitInfo")
    metrics, left = commit["operationMetrics"], numbers.read(spark).count()
    found = metrics["numDeletedRows"], metrics["numCopiedRows"]
    assert found == (str(200 - left), str(left))


def test_chance_is_refused(spark, create):
    table = create("a int, p int", "p")
    for where in ("a > 5 * rand()", "p > 5 * rand()", "rand() > 0.5"):
        with pytest.raises(InvalidRequest, match="deterministic") as refused:
            table.overwrite(spark.sql("SELECT 9 a, 9 p"), replace_where=where)
        assert refused.value.error_class == "INVALID_NON_DETERMINISTIC_EXPRESSIONS"
        with pytest.raises(InvalidCommand, match="deterministic"):
            table.delete(where, spark=spark)


def test_conditions_and_values_have_the_same_time(spark, create):
    table = create("id int, at timestamp")
    table.append(spark.range(200).selectExpr("int(id) AS id", "CAST(NULL AS timestamp) AS at"))
    table.update({"at": "current_timestamp()"}, _DRAWN.format("id"), spark=spark)
    found = table.read(spark).where("at IS NOT NULL")
    assert 0 < found.where("pmod(hash(id, at), 2) = 0").count() == found.count() < 200


def test_other_functions_of_the_session_are_left_to_spark(spark, create):
    table = create("id int, by string")
    table.append(spark.sql("SELECT 1 id, '' by"))
    values = {"by": "current_user()"}
    condition = "current_database() <> 'none' AND current_time(1 + 2) IS NOT NULL"
    table.update(values, condition, spark=spark)
    source = spark.sql("SELECT 2 id").alias("s")
    spark.udf.register("current_rank", lambda _, __: 1, "int")
    on = "t.id = s.id AND t.by = current_user() AND current_rank(t.id, current_date()) = 1"
    merge = table.merge(source, on, alias="t")
    merge.whenNotMatchedInsert(values={"id": "s.id", **values}).execute()
    me = spark.sql("SELECT current_user()").first()[0]
    assert rows(table.read(spark).select("id", "by")) == [(1, me), (2, me)]
    exists = "EXISTS (SELECT 1 WHERE current_user() <> 'none')"
    assert table.delete(exists, spark=spark).deleted == 2


def test_a_subquery_with_the_time_is_refused(spark, numbers):
    condition = "EXISTS (SELECT 1 WHERE current_date() > DATE'2020-01-01')"
    with pytest.raises(InvalidCommand, match="time as a literal") as refused:
        numbers.delete(condition, spark=spark)
    assert refused.value.error_class == "DELTA_UNSUPPORTED_SUBQUERY"


WAYS = {
    "copied": {},
    "fed": {"delta.enableChangeDataFeed": "true"},
    "marked": {"delta.enableDeletionVectors": "true"},
}
ASKED_AGAIN = {
    "a function that is said to be deterministic": "drawn(id)",
    "a subquery": "EXISTS (SELECT 1 FROM drawn_ids WHERE number = id)",
}


@pytest.mark.parametrize("condition", ASKED_AGAIN)
@pytest.mark.parametrize("way", WAYS)
def test_rows_counts_and_changes_are_of_one_computation(session, create, way, condition):
    session.udf.register("drawn", lambda _: random.random() < 0.5, "boolean")
    numbers = session.range(200).selectExpr("id AS number")
    numbers.where("drawn(number)").createOrReplaceTempView("drawn_ids")
    table = create("id int, v int", **WAYS[way])
    table.append(session.range(0, 200, 1, 3).selectExpr("int(id) AS id", "0 AS v"))
    table.append(session.range(200, 300, 1, 2).selectExpr("int(id) AS id", "2 AS v"))
    text = "id < 200 AND " + ASKED_AGAIN[condition]
    done = table.update({"v": "1"}, text, spark=session)
    assert 0 < done.updated == drawn(session, table) < 200
    gone = table.delete(text, spark=session)
    assert 0 < gone.deleted == 300 - table.read(session).count()
    if way == "fed":
        changes = table.changes(session, from_version=3)
        counts = dict(changes.groupBy("_change_type").count().collect())
        assert counts == {
            "update_preimage": done.updated,
            "update_postimage": done.updated,
            "delete": gone.deleted,
        }
