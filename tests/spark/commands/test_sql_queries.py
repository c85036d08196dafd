"""`tidegate.sql`: queries over tables of the service, alone and inside of other statements."""

from datetime import UTC, datetime

import pytest

from tests.spark.tables import rows
from tidegate import ConflictError, Table
from tidegate.spark import InvalidCommand

_ROWS = [(10, 1), (11, 1), (20, 2), (21, 2)]


@pytest.fixture
def names(session, create):
    """A table of the rows (1, 'jan'), (3, 'mar')."""
    table = create("month int, name string")
    table.append(session.sql("SELECT * FROM VALUES (1, 'jan'), (3, 'mar') AS t(month, name)"))
    return table


class TestSelect:
    def test_tables_of_the_service_and_views(self, session, months, names, sql):
        session.sql("SELECT 10 AS a UNION SELECT 20").createOrReplaceTempView("chosen")
        last = months.name.split(".")[-1]
        found = sql(
            f"""
            WITH q AS (SELECT * FROM {months.name} WHERE a < 21)
            SELECT q.a, n.name, (SELECT max(a) FROM {months.name.upper()}) AS most, {last}.month
            FROM q
            JOIN chosen USING (a)
            JOIN {months.name} ON q.a = {last}.a
            LEFT JOIN delta.`{names.location}` n ON n.month = q.month
            WHERE EXISTS (SELECT 1 FROM {names.name} AS x WHERE x.month >= {last}.month)
            ORDER BY a -- no more
            """
        )
        assert [tuple(row) for row in found.collect()] == [(10, "jan", 21, 1), (20, None, 21, 2)]

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("SELECT /*+ COALESCE(1) */ '😀', t.* FROM {} t WHERE a = 10;", [("😀", 10, 1)]),
            ("TABLE {}", [(10, 1), (11, 1), (20, 2), (21, 2)]),
            ("(SELECT a FROM {} WHERE a < 11) UNION ALL (SELECT 1)", [(1,), (10,)]),
            ("FROM {} |> WHERE month = 2 |> SELECT a", [(20,), (21,)]),
            ("SELECT count(*) FROM {} TABLESAMPLE (100 PERCENT)", [(4,)]),
            ("SELECT count(*) FROM {} TABLESAMPLE (100 PERCENT) AS t WHERE t.a > 10", [(3,)]),
            ("SELECT count(*) FROM IDENTIFIER('{}')", [(4,)]),
            ("SELECT sum(y) FROM {} VERSION AS OF 1 AS q(x, y) WHERE q.x < 21", [(4,)]),
            ("VALUES (1), (2)", [(1,), (2,)]),
        ],
    )
    def test_forms(self, months, sql, text, expected):
        found = sql(text.replace("{}", months.name))
        assert sorted(tuple(row) for row in found.collect()) == expected

    def test_names_in_backticks(self, months, sql):
        name = ".".join(f"`{part}`" for part in months.name.split("."))
        assert sql(f"SELECT max({name.split('.')[-1]}.a) FROM {name}").first()[0] == 21

    def test_versions_and_timestamps(self, session, months, sql):
        sql(f"DELETE FROM {months.name} WHERE month = 2")
        when = datetime.fromtimestamp(months.history()[1].timestamp / 1000, UTC).isoformat()
        for past in (
            "VERSION AS OF 1",
            "FOR SYSTEM_VERSION AS OF '1'",
            f"TIMESTAMP AS OF '{when}'",
            f"TIMESTAMP AS OF TIMESTAMP '{when}' + INTERVAL 0 DAYS",
        ):
            found = sql(
                f"SELECT p.a FROM {months.name} {past} AS p LEFT ANTI JOIN {months.name} n "
                "ON n.a = p.a"
            )
            assert sorted(row.a for row in found.collect()) == [20, 21], past

    def test_a_table_is_of_one_version(self, session, months, sql, lake):
        found = sql(f"SELECT * FROM {months.name} UNION ALL TABLE {months.name.upper()}")
        months.delete("month = 1")
        assert found.count() == 8

    def test_no_view_stays(self, session, months, sql):
        sql(f"SELECT * FROM {months.name}").collect()
        with pytest.raises(InvalidCommand):
            sql(f"SELECT nothing FROM {months.name}")
        with pytest.raises(InvalidCommand):
            sql(f"SELECT * FROM {months.name} JOIN main.test.nowhere")
        assert session.sql("SHOW VIEWS LIKE 'tidegate_*'").count() == 0

    def test_what_is_cached_stays(self, session, months, sql):
        cached = months.read(session).cache()
        try:
            assert cached.count() == 4
            sql(f"SELECT * FROM {months.name}").collect()
            assert cached.storageLevel.useMemory
            assert "InMemoryTableScan" in session._jvm.PythonSQLUtils.explainString(
                months.read(session)._jdf.queryExecution(), "simple"
            )
        finally:
            cached.unpersist()

    def test_a_transaction_reads(self, session, months, sql):
        with months.transaction() as txn:
            assert sql(f"SELECT count(*) FROM {months.name}").first()[0] == 4
            txn.add(txn.write_files(session.sql("SELECT 4 AS a, 4 AS month")))
            assert not txn.commit("WRITE").is_blind_append


def test_what_is_sparks_own_stays_so(session, sql):
    """Its tables may have options, and a database may be called delta."""
    session.sql("CREATE DATABASE IF NOT EXISTS delta")
    session.sql("CREATE TABLE delta.own USING parquet AS SELECT 1 AS a")
    try:
        found = sql("SELECT * FROM delta.own WITH (mergeSchema = true), spark_catalog.delta.own o")
        assert rows(found) == [(1, 1)]
    finally:
        session.sql("DROP DATABASE delta CASCADE")


class TestRefused:
    @pytest.mark.parametrize(
        ("text", "error_class", "words"),
        [
            ("SELECT * FROM main.test.nowhere", "TABLE_OR_VIEW_NOT_FOUND", "neither the session"),
            ("SELECT * FROM nowhere", "TABLE_OR_VIEW_NOT_FOUND", "`nowhere` cannot be found"),
            ("SELECT * FROM delta.`/nowhere`", "DELTA_MISSING_DELTA_TABLE", "register it"),
            ("SELECT '${spark.app.name}' FROM {}", "DELTA_OPERATION_NOT_ALLOWED", "without ${"),
            ("SELECT * FROM STREAM {}", "DELTA_OPERATION_NOT_ALLOWED", "readStream"),
            ("SELECT * FROM {} VERSION AS OF 'x'", "PARSE_SYNTAX_ERROR", "version's number"),
            ("SELECT * FROM {} TIMESTAMP AS OF 'x'", "DELTA_TIMESTAMP_INVALID", "'x'"),
            ("SELECT * FROM {}@v1", "DELTA_OPERATION_NOT_ALLOWED", "without @"),
            (
                "SELECT * FROM {} WITH (versionAsOf = 0)",
                "DELTA_OPERATION_NOT_ALLOWED",
                "without options",
            ),
            ("WITH q AS (SELECT 1) DELETE FROM {}", "PARSE_SYNTAX_ERROR", "expected a query"),
            ("SELECT 1; DROP VIEW v", "PARSE_SYNTAX_ERROR", "DROP"),
            ("SHOW TABLES", "PARSE_SYNTAX_ERROR", "expected one of SELECT"),
        ],
    )
    def test_what_is_no_query_of_tables(self, months, sql, text, error_class, words):
        with pytest.raises(InvalidCommand) as refused:
            sql(text.replace("{}", months.name))
        assert refused.value.getCondition() == error_class
        assert words in str(refused.value)
        assert months.head().version == 1


class TestInside:
    def test_conditions_and_values(self, session, months, names, sql):
        sql(
            f"DELETE FROM {months.name} t WHERE a < 21 AND "
            f"NOT EXISTS (SELECT 1 FROM {names.name} n WHERE n.month = t.month)"
        )
        assert rows(months.read(session)) == [(10, 1), (11, 1), (21, 2)]
        sql(
            f"UPDATE {months.name} t SET a = a + 100 "
            f"WHERE EXISTS (SELECT 1 FROM {names.name} n WHERE n.month = t.month)"
        )
        assert rows(months.read(session)) == [(21, 2), (110, 1), (111, 1)]

    def test_the_source_of_a_merge(self, session, months, names, sql):
        sql(
            f"""
            MERGE INTO {months.name} t
            USING (SELECT month, length(name) * 10 AS a FROM {names.name} VERSION AS OF 1) s
            ON t.month = s.month AND t.a = 10
            WHEN MATCHED THEN UPDATE SET a = s.a
            WHEN NOT MATCHED THEN INSERT *
            """
        )
        assert rows(months.read(session)) == [(11, 1), (20, 2), (21, 2), (30, 1), (30, 3)]

    def test_as_select(self, session, lake, months, sql):
        name = f"{months.name}_sums"
        sql(f"CREATE TABLE {name} AS SELECT month, sum(a) AS a FROM {months.name} GROUP BY month")
        assert rows(lake.table(name).read(session)) == [(1, 21), (2, 41)]
        sql(f"CREATE OR REPLACE TABLE {name} AS SELECT month FROM {name} WHERE month = 1")
        assert rows(lake.table(name).read(session)) == [(1,)]

    @pytest.mark.parametrize(
        "case",
        [
            (
                "DELETE FROM {} t WHERE NOT EXISTS (SELECT 1 FROM {} o WHERE o.a > t.a)",
                [(10, 1), (11, 1), (20, 2), (21, 2)],
            ),
            ("INSERT OVERWRITE {} SELECT a + 1, month FROM {} WHERE a > 20", [(22, 2), (31, 3)]),
            ("INSERT INTO {} SELECT max(a), 9 FROM {}", [*_ROWS, (30, 3), (30, 9)]),
        ],
    )
    def test_own_rows_are_recorded_as_read(self, session, months, sql, monkeypatch, case):
        """Who adds rows between the read and the commit is a conflict."""
        text, expected = case
        text = text.replace("{}", months.name)
        read = Table.read

        def late(table, *arguments, **options):
            found = read(table, *arguments, **options)
            months.append(session.sql("SELECT 30 AS a, 3 AS month"))
            return found

        monkeypatch.setattr(Table, "read", late)
        with pytest.raises(ConflictError):
            sql(text)
        monkeypatch.undo()
        sql(text)
        assert rows(months.read(session)) == expected
