"""Sessions that read texts and names of a predicate otherwise than the service and Catalyst do."""

import pytest
from pyspark.sql import functions as F

from tests.spark.tables import rows

SCHEMA = "s string, n int"
FIRST = [("a\\b", 1), ("it's", 2)]


@pytest.fixture
def keeping_backslashes(spark):
    session = spark.newSession()
    session.conf.set("spark.sql.parser.escapedStringLiterals", "true")
    return session


@pytest.fixture(params=[("s",), ()], ids=["partitions", "columns"])
def table(spark, create, request):
    made = create(SCHEMA, *request.param)
    made.append(spark.createDataFrame(FIRST, SCHEMA))
    return made


def test_a_predicate_with_escapes(keeping_backslashes, table):
    where = "s = 'a\\b'"
    assert rows(table.read(keeping_backslashes).where(where)) == FIRST[:1]
    assert rows(table.read(keeping_backslashes, where)) == FIRST[:1]
    more = keeping_backslashes.createDataFrame([("a\\b", 3)], SCHEMA)
    table.overwrite(more, replace_where=where)
    assert rows(table.read(keeping_backslashes)) == [("a\\b", 3), ("it's", 2)]


def test_a_merge_of_texts_with_escapes(keeping_backslashes, table):
    source = keeping_backslashes.createDataFrame([("a\\b", 10), ("it's", 20)], SCHEMA)
    merged = table.merge(source.alias("s"), "t.s = s.s", alias="t").whenMatchedUpdateAll()
    merged.whenNotMatchedInsertAll().execute()
    assert rows(table.read(keeping_backslashes)) == [("a\\b", 10), ("it's", 20)]


def test_a_delete_of_texts_with_escapes(keeping_backslashes, table):
    changed = table.delete("s IN ('a\\b', 'x')", spark=keeping_backslashes)
    assert changed.deleted == 1
    assert rows(table.read(keeping_backslashes)) == FIRST[1:]


def test_names_in_double_quotes(spark, table):
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", "true")
    session.conf.set("spark.sql.ansi.doubleQuotedIdentifiers", "true")
    assert rows(table.read(session, '"n" = 2')) == FIRST[1:]
    assert rows(table.read(session, "\"s\" LIKE 'it%'")) == FIRST[1:]


def test_variables_in_texts(session, create):
    table = create("s string")
    table.append(session.sql("SELECT explode(array('a', 'b')) s"))
    session.conf.set("my.key", "a")
    assert rows(table.read(session, "s = '${my.key}'")) == [("a",)]
    table.overwrite(session.sql("SELECT 'a' s"), replace_where="s = '${my.key}'")
    assert rows(table.read(session)) == [("a",), ("b",)]


def test_a_function_of_a_user_with_the_name_of_one_of_sparks(spark, create):
    @F.udf("int")
    def year(date):
        return date.year + (date.month > 9)

    table = create("d date")
    table.append(spark.sql("SELECT DATE'2024-11-05' d"))
    assert table.delete(year(F.col("d")) == 2024, spark=spark).deleted == 0
    source = spark.sql("SELECT 2025 y").alias("s")
    merged = table.merge(source, year(F.col("t.d")) == F.col("s.y"), alias="t")
    merged.whenMatchedDelete(year(F.col("t.d")) == 2025).execute()
    assert table.read(spark).isEmpty()
