"""Sessions that read texts and names of a predicate otherwise than the service and Catalyst do."""

import pytest

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
