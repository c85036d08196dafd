"""`tidegate.sql`: INSERT by position and by name, of partitions, and in the place of rows."""

import pytest

from tests.spark.tables import rows
from tidegate import InvalidRequest
from tidegate.spark import InvalidCommand, InvalidRows, SchemaMismatch

_FOUR = [(10, 1), (11, 1), (20, 2), (21, 2)]


class TestInto:
    @pytest.mark.parametrize(
        ("text", "added"),
        [
            ("INTO {} VALUES (30, 3)", [(30, 3)]),
            ("INTO TABLE {} SELECT month, a FROM {} WHERE a = 10;", [(1, 10)]),
            ("INTO {} (month, A) VALUES (3, 30), (4, 40)", [(30, 3), (40, 4)]),
            ("INTO {} BY NAME SELECT 3 AS month, 30 AS a", [(30, 3)]),
            ("INTO {} (SELECT 30, 3)", [(30, 3)]),
            ("INTO {} WITH q AS (SELECT 30, 3) SELECT * FROM q", [(30, 3)]),
            ("INTO {} FROM {} SELECT a, month + 6 WHERE a = 10", [(10, 7)]),
            ("INTO {} TABLE {}", _FOUR),
            ("INTO {} VALUES (30, DEFAULT), (31, 3)", [(30, None), (31, 3)]),
            ("INTO {} PARTITION (month = 3) SELECT 30", [(30, 3)]),
            ("INTO {} PARTITION (month = '3') VALUES (30)", [(30, 3)]),
            ("INTO {} PARTITION (month) SELECT 30, 3", [(30, 3)]),
            ("INTO {} PARTITION (MONTH = 3) BY NAME SELECT 30 AS a", [(30, 3)]),
            ("INTO {} PARTITION (month = 3) (a) VALUES (DEFAULT)", [(None, 3)]),
        ],
    )
    def test_rows_are_added(self, session, months, sql, text, added):
        assert sql("INSERT " + text.replace("{}", months.name)).collect() == []
        assert sorted(rows(months.read(session)), key=str) == sorted([*_FOUR, *added], key=str)
        assert months.history()[0].operation == "WRITE"

    def test_fields_go_by_position(self, session, create, sql):
        table = create("s struct<x: int, y: array<struct<k: int, v: string>>>, m map<string, int>")
        sql(
            f"INSERT INTO {table.name} SELECT named_struct('y', 1, 'x', "
            "array(named_struct('v', 2, 'k', 'two'))), map('a', 1)"
        )
        ((s, m),) = table.read(session).collect()
        assert s.asDict(recursive=True) == {"x": 1, "y": [{"k": 2, "v": "two"}]}
        assert m == {"a": 1}
        with pytest.raises(SchemaMismatch, match="expected 2 columns"):
            sql(f"INSERT INTO {table.name} SELECT named_struct('x', 1), map('a', 1)")

    def test_fields_go_by_position_beside_defaults(self, session, create, sql):
        table = create("s struct<a: int, b: int>, d int")
        sql(f"INSERT INTO {table.name} VALUES (named_struct('b', 1, 'a', 2), DEFAULT)")
        assert table.read(session).first().s.asDict() == {"a": 1, "b": 2}
        with pytest.raises(SchemaMismatch, match="expected 2 columns"):
            sql(f"INSERT INTO {table.name} VALUES (named_struct('b', 1), DEFAULT)")

    def test_partition_columns_that_are_not_listed_are_null(self, session, months, sql):
        sql(f"INSERT INTO {months.name} (a) VALUES (3)")
        assert (3, None) in rows(months.read(session))

    def test_values_that_the_table_computes(self, session, create, sql):
        table = create("id bigint, twice bigint, n int")
        for change in (
            "SET TBLPROPERTIES (delta.feature.allowColumnDefaults = 'supported')",
            "ALTER COLUMN n SET DEFAULT 7",
        ):
            sql(f"ALTER TABLE {table.name} {change}")
        sql(f"INSERT INTO {table.name} (twice, id) VALUES (2, 1)")
        sql(f"INSERT INTO {table.name} VALUES (2, abs(-4), DEFAULT)")
        assert rows(table.read(session)) == [(1, 2, 7), (2, 4, 7)]

    def test_more_columns(self, session, months, sql):
        more = f"INTO {months.name} SELECT 30, 3, 'new' AS how"
        with pytest.raises(SchemaMismatch) as refused:
            sql(f"INSERT {more}")
        assert refused.value.error_class == "DELTA_INSERT_COLUMN_ARITY_MISMATCH"
        sql(f"INSERT WITH SCHEMA EVOLUTION {more}")
        assert (30, 3, "new") in rows(months.read(session))
        sql(f"INSERT WITH SCHEMA EVOLUTION INTO {months.name} BY NAME SELECT 1 AS day, 4 AS month")
        assert (None, 4, None, 1) in rows(months.read(session))
        session.conf.set("spark.databricks.delta.schema.autoMerge.enabled", "true")
        sql(f"INSERT INTO {months.name} SELECT 30, 3, 'new', 2, 'more' AS further")
        assert (30, 3, "new", 2, "more") in rows(months.read(session))

    def test_metadata_and_retries(self, months, sql):
        sql(f"INSERT INTO {months.name} VALUES (1, 1)", user_metadata="nightly", retries=2)
        assert months.history(limit=1)[0].user_metadata == "nightly"


class TestOverwrite:
    @pytest.mark.parametrize(
        "case",
        [
            ("static", "OVERWRITE {} SELECT 30, 3", [(30, 3)]),
            ("static", "OVERWRITE TABLE {} SELECT a + 1, month FROM {} WHERE a = 10", [(11, 1)]),
            ("dynamic", "OVERWRITE {} (month, a) SELECT 2, 30", [(10, 1), (11, 1), (30, 2)]),
            ("static", "OVERWRITE {} PARTITION (month = 2) SELECT 30", [(10, 1), (11, 1), (30, 2)]),
            (
                "dynamic",
                "OVERWRITE {} PARTITION (month = 2) VALUES (3)",
                [(3, 2), (10, 1), (11, 1)],
            ),
            ("static", "OVERWRITE {} PARTITION (month) SELECT 30, 2", [(30, 2)]),
            ("dynamic", "OVERWRITE {} PARTITION (month) SELECT 30, 2", [(10, 1), (11, 1), (30, 2)]),
            ("static", "OVERWRITE {} PARTITION (month = NULL) SELECT 30", [*_FOUR, (30, None)]),
            (
                "static",
                "OVERWRITE {} PARTITION (month = 2) SELECT 1 WHERE false",
                [(10, 1), (11, 1)],
            ),
            ("static", "INTO {} REPLACE WHERE a > 10 SELECT 30, 3", [(10, 1), (30, 3)]),
            (
                "static",
                "INTO {} BY NAME REPLACE WHERE month IS DISTINCT FROM 1 SELECT 3 AS month, 1 AS a",
                [(1, 3), (10, 1), (11, 1)],
            ),
        ],
    )
    def test_rows_are_replaced(self, session, months, sql, case):
        mode, text, expected = case
        session.conf.set("spark.sql.sources.partitionOverwriteMode", mode)
        sql("INSERT " + text.replace("{}", months.name))
        assert sorted(rows(months.read(session)), key=str) == sorted(expected, key=str)

    def test_some_partition_columns_with_values(self, session, create, sql):
        table = create("a int, y int, m int", "y", "m")
        text = f"INSERT OVERWRITE {table.name} PARTITION (y = 1, m) SELECT "
        sql(f"INSERT INTO {table.name} VALUES (1, 1, 1), (2, 1, 2), (3, 2, 2)")
        session.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
        sql(f"{text} 4, 2")
        assert rows(table.read(session)) == [(1, 1, 1), (3, 2, 2), (4, 1, 2)]
        session.conf.set("spark.sql.sources.partitionOverwriteMode", "static")
        sql(f"{text} 5, 3")
        assert rows(table.read(session)) == [(3, 2, 2), (5, 1, 3)]


class TestRefused:
    @pytest.mark.parametrize(
        "case",
        [
            ("INTO {} VALUES (1)", SchemaMismatch, "expected 2 columns"),
            ("INTO {} (a, a) VALUES (1, 2)", SchemaMismatch, "twice"),
            ("INTO {} (a, b) VALUES (1, 2)", SchemaMismatch, "has no columns"),
            ("INTO {} (a, month) SELECT 1", SchemaMismatch, "expected 2 columns"),
            ("INTO {} PARTITION (a = 1) SELECT 2", InvalidCommand, "non-partition column: a"),
            ("INTO {} PARTITION (month = 'x') SELECT 2", InvalidCommand, "CAST_INVALID_INPUT"),
            ("OVERWRITE {} PARTITION (month = 1.9) SELECT 2", InvalidCommand, "found 1.9"),
            ("OVERWRITE {} PARTITION (month = true) SELECT 2", InvalidCommand, "found true"),
            ("OVERWRITE {} PARTITION (month = 1, MONTH = 2) SELECT 2", InvalidCommand, "DUPLICATE"),
            (
                "OVERWRITE {} PARTITION (month = 1) BY NAME SELECT 2 AS a, 3 AS Month",
                InvalidCommand,
                "STATIC_PARTITION_COLUMN",
            ),
            ("INTO {} PARTITION (month = 1) (a, month) SELECT 5, 7", InvalidCommand, "has them"),
            ("OVERWRITE {} SELECT 1, 2 WHERE 1 = 1) AND 1 = 2", InvalidCommand, "near ')'"),
            ("INTO {} VALUES (1, 1)) ; anything", InvalidCommand, "extra input"),
            ("INTO {} VALUES (id, DEFAULT)", InvalidRequest, "`id`"),
            ("INTO {} VALUES (DEFAULT, a + 1)", InvalidRequest, "`a`"),
            ("INTO {} VALUES (1, DEFAULT, 2)", SchemaMismatch, "a row has 3 values"),
            ("WITH SCHEMA EVOLUTION INTO {} (a) SELECT 1, 2 AS month", SchemaMismatch, "found 2"),
            ("INTO {} PARTITION (month = 1) SELECT 2, 3", SchemaMismatch, "expected 1 columns"),
            ("OVERWRITE {} PARTITION (month = 1) IF NOT EXISTS SELECT 2", InvalidCommand, "IF"),
            ("INTO {} REPLACE USING (a) SELECT 1, 2", InvalidCommand, "expected WHERE"),
            ("INTO {} REPLACE WHERE a = 1 SELECT 2, 1", InvalidRows, "a = 1"),
            ("INTO {} SELECT DEFAULT, 1", InvalidCommand, "DEFAULT"),
            ("INTO {} VALUES (DEFAULT, nothing)", InvalidRequest, "nothing"),
            ("INTO {}", InvalidCommand, "PARSE_SYNTAX_ERROR"),
            ("INTO {} (DROP VIEW v)", InvalidCommand, "PARSE_SYNTAX_ERROR"),
            ("{} SELECT 1, 2", InvalidCommand, "PARSE_SYNTAX_ERROR"),
        ],
    )
    def test_what_does_not_fit(self, months, sql, case):
        text, error, words = case
        with pytest.raises(error) as refused:
            sql("INSERT " + text.replace("{}", months.name))
        assert words in str(refused.value)
        assert months.head().version == 1
