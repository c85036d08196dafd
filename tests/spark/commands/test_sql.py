"""`tidegate.sql`: statements become the commands that they say, and what is none is refused."""

import pytest
from pyspark.errors import AnalysisException

from tests.spark.reading.vectors import VECTORS
from tests.spark.tables import rows
from tidegate.spark import InvalidCommand


@pytest.fixture
def updates(session):
    session.sql(
        "SELECT * FROM VALUES (10, 1, 'kept'), (20, 9, 'moved'), (30, 3, 'new') AS u(a, month, how)"
    ).createOrReplaceTempView("updates")
    yield
    session.catalog.dropTempView("updates")


def _only(frame):
    (row,) = frame.collect()
    return row.asDict()


class TestRows:
    def test_delete(self, session, months, sql):
        assert _only(sql(f"DELETE FROM {months.name} AS t WHERE t.a = 10;")) == {
            "num_affected_rows": 1
        }
        assert rows(months.read(session)) == [(11, 1), (20, 2), (21, 2)]
        assert _only(sql(f"delete from {months.name.upper()} -- all of them")) == {
            "num_affected_rows": 3
        }
        assert [commit.operation for commit in months.history(limit=2)] == ["DELETE", "DELETE"]

    def test_update(self, session, months, sql):
        found = sql(
            f"UPDATE {months.name} t SET `a` = CASE WHEN t.a = 20 THEN 0 ELSE t.a + 1 END, "
            "month = abs(-7) WHERE month = 2"
        )
        assert _only(found) == {"num_affected_rows": 2}
        assert rows(months.read(session)) == [(0, 7), (10, 1), (11, 1), (22, 7)]

    def test_words_that_are_names_or_values(self, session, create, sql):
        table = create("`end` int, `type` string, s struct<`case`: int, `where`: int>")
        table.append(
            session.sql("SELECT 1 AS `end`, 'a' AS type, named_struct('case', 2, 'where', 3) AS s")
        )
        sql(
            f"UPDATE {table.name} t SET s.where = CASE WHEN t.end = 1 THEN t.s.case END, "
            "type = concat(type, r'where') WHERE t.s.where = 3"
        )
        assert rows(table.read(session)) == [(1, "awhere", (2, 2))]

    @pytest.mark.parametrize(
        "text",
        [
            "DELETE FROM {} WHERE a = 10 b",
            "UPDATE {} SET a = 1 b WHERE month = 1",
            "MERGE INTO {} t USING updates s ON t.a = s.a b WHEN MATCHED THEN DELETE",
            "MERGE INTO {} t USING updates s ON t.a = s.a WHEN MATCHED AND t.a = 10 b THEN DELETE",
        ],
    )
    def test_an_expression_has_no_name(self, months, updates, sql, text):
        with pytest.raises(AnalysisException) as named:
            sql(text.replace("{}", months.name))
        assert named.value.getCondition() == "PARSE_SYNTAX_ERROR"
        assert months.head().version == 1

    def test_commits_have_the_metadata(self, session, lake, months, sql):
        session.conf.set("spark.databricks.delta.commitInfo.userMetadata", "hourly")
        sql(f"DELETE FROM {months.name} WHERE month = 1", user_metadata="nightly")
        sql(f"COMMENT ON TABLE {months.name} IS 'all'")
        sql(f"RESTORE {months.name} VERSION AS OF 1")
        sql(f"UPDATE {months.name} SET a = 1 WHERE a = 10")
        sql(f"MERGE INTO {months.name} t USING (SELECT 1 b) s ON t.a = b WHEN MATCHED THEN DELETE")
        sql(f"OPTIMIZE {months.name} ZORDER BY a")
        said = [commit.user_metadata for commit in months.history(limit=6)]
        assert said == [*["hourly"] * 5, "nightly"]
        sql(f"CREATE TABLE {months.name}_cloned SHALLOW CLONE {months.name}")
        (creation,) = lake.table(f"{months.name}_cloned").history()
        assert creation.user_metadata == "hourly"


class TestMerge:
    def test_clauses_in_their_order(self, session, months, updates, sql):
        found = sql(
            f"""
            MERGE INTO {months.name} AS t
            USING (SELECT a, month, how FROM updates WHERE a > 0) s
            ON t.a = s.a AND t.month = CASE WHEN s.month > 5 THEN 2 ELSE s.month END
            WHEN MATCHED AND s.how = CASE WHEN true THEN 'moved' END THEN DELETE
            WHEN MATCHED THEN UPDATE SET t.a = s.a + 100, month = t.month
            WHEN NOT MATCHED BY TARGET AND s.how = 'new' THEN INSERT (month, a) VALUES (s.month, 31)
            WHEN NOT MATCHED BY SOURCE AND t.a = 21 THEN UPDATE SET a = -t.a
            WHEN NOT MATCHED BY SOURCE THEN DELETE
            """
        )
        assert _only(found) == {
            "num_affected_rows": 5,
            "num_updated_rows": 2,
            "num_deleted_rows": 2,
            "num_inserted_rows": 1,
        }
        assert rows(months.read(session)) == [(-21, 2), (31, 3), (110, 1)]

    def test_stars_and_new_columns(self, session, months, updates, sql):
        sql(
            f"MERGE WITH SCHEMA EVOLUTION INTO {months.name} t USING updates ON t.a = updates.a "
            "AND t.month = updates.month WHEN MATCHED THEN UPDATE SET * "
            "WHEN NOT MATCHED AND updates.a = 30 THEN INSERT *"
        )
        assert sorted(months.read(session).collect(), key=lambda row: row.a)[-1] == (30, 3, "new")
        assert months.read(session, "a = 10").collect()[0].how == "kept"

    def test_the_source_may_be_a_table_of_the_service(self, session, months, create, sql):
        other = create("a int, month int")
        other.append(session.sql("SELECT 10 AS a, 1 AS month"))
        sql(
            f"MERGE INTO {months.name} t USING {other.name} AS s ON t.a = s.a "
            "WHEN MATCHED THEN DELETE"
        )
        assert rows(months.read(session)) == [(11, 1), (20, 2), (21, 2)]

    def test_a_source_that_is_nowhere(self, months, sql):
        with pytest.raises(InvalidCommand, match="`nowhere` cannot be found") as none:
            sql(f"MERGE INTO {months.name} t USING nowhere s ON true WHEN MATCHED THEN DELETE")
        assert none.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"

    def test_a_source_that_is_no_query(self, session, months, updates, sql):
        with pytest.raises(InvalidCommand) as command:
            sql(
                f"MERGE INTO {months.name} t USING (DROP VIEW updates) s ON true "
                "WHEN MATCHED THEN DELETE"
            )
        assert command.value.getCondition() == "PARSE_SYNTAX_ERROR"
        assert session.catalog.tableExists("updates")
        assert months.head().version == 1

    def test_values_for_columns(self, months, updates, sql):
        begun = f"MERGE INTO {months.name} t USING updates s ON t.a = s.a WHEN NOT MATCHED THEN "
        with pytest.raises(InvalidCommand, match=r"values \(1\) must match"):
            sql(begun + "INSERT (a, month) VALUES (s.a)")
        with pytest.raises(InvalidCommand) as twice:
            sql(begun + "INSERT (a, a) VALUES (1, 2)")
        assert twice.value.getCondition() == "DELTA_CONFLICT_SET_COLUMN"


class TestUpkeep:
    def test_vacuum(self, months, sql):
        assert rows(sql(f"VACUUM {months.name} RETAIN 200 HOURS")) == [(months.location,)]
        assert sql(f"VACUUM {months.name} DRY RUN").collect() == []

    def test_generate(self, months, sql):
        sql(f"GENERATE symlink_format_manifest FOR TABLE {months.name}")
        with pytest.raises(InvalidCommand) as other:
            sql(f"GENERATE csv FOR TABLE {months.name}")
        assert other.value.getCondition() == "DELTA_MODE_NOT_SUPPORTED"

    def test_history_and_detail(self, months, sql):
        newest, *_ = sql(f"DESCRIBE HISTORY {months.name} LIMIT 1").collect()
        assert (newest.version, newest.operation) == (1, "WRITE")
        place = months.location.removeprefix("file://")
        assert _only(sql(f"DESC DETAIL delta.`{place}`"))["name"] == months.name


class TestRefusals:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("", "expected one of SELECT, VALUES"),
            ("SHOW TABLES", "expected one of SELECT, VALUES"),
            ("DELETE main.test.t", "near 'main': missing 'FROM'"),
            ("DELETE FROM {} WHERE", "expected an expression, found the end"),
            ("DELETE FROM {} WHERE a = 1)", r"near '\)': extra input"),
            ("DELETE FROM {} t u", "near 'u': extra input"),
            ("DELETE FROM {}; DELETE FROM {}", "near 'DELETE': extra input"),
            ("DELETE FROM {} WHERE a = 'x", "quote is not closed"),
            ("DELETE FROM {} /* WHERE a = 1", "quote is not closed"),
            ("DELETE FROM {} {# WHERE a = 1 #}", "expected a blank or a comment, found {#"),
            ("DELETE FROM {} /*+ WHERE a = 1 */", r"expected a blank or a comment, found /\*\+"),
            ("UPDATE {} SET a = 1 -- \\\n, b = 2", "expected a blank or a comment, found --"),
            ("DELETE FROM {} r'WHERE' a = 10", "near 'r'WHERE''"),
            ("UPDATE {} SET a 1", "near '1': missing EQ"),
            ("UPDATE {} SET a = 1,", "near end of input"),
            ("UPDATE {} SET a b = 1", "near 'b': extra input"),
            (
                "MERGE INTO {} USING updates ON true WHEN NOT MATCHED THEN INSERT (a b) VALUES (1)",
                "near 'b': extra input",
            ),
            ("OPTIMIZE {} ZORDER a", "expected BY, found a"),
            ("OPTIMIZE {} ZORDER BY a month", "expected the end of the statement, found month"),
            ("MERGE INTO {} USING updates ON true WHEN THEN DELETE", "near 'THEN'"),
            (
                "MERGE INTO {} USING updates ON true WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *",
                r"near '\*'",
            ),
            ("VACUUM {} RETAIN soon HOURS", "expected a number, found soon"),
            ("VACUUM {} RETAIN 1e400 HOURS", "expected no more than 999999999 days to retain"),
            ("VACUUM {} LITE", "expected the end of the statement, found LITE"),
            ("DESCRIBE HISTORY {} LIMIT 1.5", "expected a whole number, found 1.5"),
            ("DESCRIBE TABLE {}", "expected HISTORY, found TABLE"),
        ],
    )
    def test_it_says_what_was_expected_and_found(self, months, updates, sql, text, expected):
        with pytest.raises(InvalidCommand, match=expected) as refused:
            sql(text.replace("{}", months.name))
        assert refused.value.getCondition() == "PARSE_SYNTAX_ERROR"
        assert months.head().version == 1

    def test_a_column_twice(self, months, sql):
        with pytest.raises(InvalidCommand) as twice:
            sql(f"UPDATE {months.name} SET a = 1, a = 2")
        assert twice.value.getCondition() == "DELTA_CONFLICT_SET_COLUMN"

    def test_no_such_table(self, sql):
        with pytest.raises(InvalidCommand, match=r"main\.test\.none is not") as none:
            sql("DELETE FROM main.test.none")
        assert none.value.getCondition() == "DELTA_MISSING_DELTA_TABLE"


class TestRearranging:
    def test_optimize(self, session, months, sql):
        months.append(session.sql("SELECT 12 AS a, 1 AS month"))
        (row,) = sql(f"OPTIMIZE {months.name} WHERE month = 1").collect()
        assert (row.metrics.numFilesAdded, row.metrics.numFilesRemoved) == (1, 2)
        with pytest.raises(InvalidCommand) as named:
            sql(f"OPTIMIZE {months.name} WHERE month = 1 b")
        assert named.value.getCondition() == "DELTA_FAILED_RECOGNIZE_PREDICATE"
        (row,) = sql(f"OPTIMIZE {months.name} ZORDER BY (a)").collect()
        assert row.metrics.zOrderStats.mergedFiles.num == 2
        assert months.history(limit=1)[0].operation_parameters["zOrderBy"] == '["a"]'

    def test_reorg(self, session, create, sql):
        table = create("id bigint", **VECTORS)
        table.append(session.range(5).coalesce(1))
        sql(f"DELETE FROM {table.name} WHERE id = 3")
        (row,) = sql(f"REORG TABLE {table.name} APPLY (PURGE)").collect()
        assert row.metrics.deletionVectorStats.numDeletionVectorRowsRemoved == 1

    def test_restore(self, session, months, sql):
        sql(f"DELETE FROM {months.name} WHERE a > 10")
        found = _only(sql(f"RESTORE TABLE {months.name} TO VERSION AS OF 1"))
        assert found["num_restored_files"] == 2
        assert rows(months.read(session)) == [(10, 1), (11, 1), (20, 2), (21, 2)]
        with pytest.raises(InvalidCommand) as late:
            sql(f"RESTORE {months.name} TO TIMESTAMP AS OF '2999-01-01'")
        assert late.value.getCondition() == "DELTA_CANNOT_RESTORE_TIMESTAMP_GREATER"
