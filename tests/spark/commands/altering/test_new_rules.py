"""Rules that metadata makes for rows: no row breaks them, and every writer can ask for them."""

from threading import Thread

import pytest
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from tests.spark.tables import data_files, rows
from tidegate import ConflictError, InvalidProposal
from tidegate.spark import InvalidCommand
from tidegate.spark.tables import DeltaTable

DEFAULTS = {"delta.feature.allowColumnDefaults": "supported"}
PREFIX = "delta.constraints."
A, B = StructField("a", IntegerType()), StructField("b", StringType())


def generated(sql: str) -> StructField:
    return StructField("g", LongType(), True, {"delta.generationExpression": sql})


def default(sql: str) -> StructField:
    return StructField("d", IntegerType(), True, {"CURRENT_DEFAULT": sql})


def check(sql: str) -> dict[str, str]:
    return {PREFIX + "c": sql}


WRONG = [
    ([generated("a + 1")], {}, "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH"),
    ([generated("sum(a)")], {}, "DELTA_AGGREGATE_IN_GENERATED_COLUMN"),
    ([generated("row_number() OVER (ORDER BY a)")], {}, "DELTA_UNSUPPORTED_EXPRESSION_GENERATED"),
    ([generated("(SELECT 1L)")], {}, "DELTA_UNSUPPORTED_EXPRESSION_GENERATED"),
    ([generated("unix_seconds(now())")], {}, "DELTA_UNSUPPORTED_EXPRESSION_GENERATED"),
    ([generated("CAST(rand() AS long)")], {}, "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_GENERATED"),
    ([generated("mine(a)")], {}, "DELTA_UDF_IN_GENERATED_COLUMN"),
    ([generated("one()")], {}, "DELTA_UDF_IN_GENERATED_COLUMN"),
    ([generated("nowhere(a)")], {}, "UNRESOLVED_ROUTINE"),
    ([generated("nothing")], {}, "DELTA_INVALID_GENERATED_COLUMN_REFERENCES"),
    ([generated("CAST(g AS long)")], {}, "DELTA_INVALID_GENERATED_COLUMN_REFERENCES"),
    ([generated("a AS long")], {}, "PARSE_SYNTAX_ERROR"),
    ([default("'text'")], DEFAULTS, "INVALID_DEFAULT_VALUE.DATA_TYPE"),
    ([default("a")], DEFAULTS, "INVALID_DEFAULT_VALUE.UNRESOLVED_EXPRESSION"),
    ([default("count(1)")], DEFAULTS, "INVALID_DEFAULT_VALUE.NOT_CONSTANT"),
    ([default("int(mine(1))")], DEFAULTS, "INVALID_DEFAULT_VALUE.NOT_CONSTANT"),
    ([default("int(one())")], DEFAULTS, "INVALID_DEFAULT_VALUE.NOT_CONSTANT"),
    ([default("int(rand() * 9)")], DEFAULTS, "INVALID_DEFAULT_VALUE.NON_DETERMINISTIC"),
    ([default("(SELECT 1)")], DEFAULTS, "INVALID_DEFAULT_VALUE.SUBQUERY_EXPRESSION"),
    ([default("1) + (2")], DEFAULTS, "INVALID_DEFAULT_VALUE.UNRESOLVED_EXPRESSION"),
    ([], check("a + 1"), "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT"),
    ([], check("a > rand()"), "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_CHECK_CONSTRAINT"),
    ([], check("a > (SELECT 1)"), "DELTA_UNSUPPORTED_EXPRESSION_CHECK_CONSTRAINT"),
    ([], check("max(a) > 1"), "INVALID_WHERE_CONDITION"),
    ([], check("mine(a) > 1"), "DELTA_UDF_IN_CHECK_CONSTRAINT"),
    ([], check("above(a)"), "DELTA_UDF_IN_CHECK_CONSTRAINT"),
    ([], check("a > 0) OR (a < 0"), "PARSE_SYNTAX_ERROR"),
    ([], check("nowhere(a)"), "UNRESOLVED_ROUTINE"),
]
WRONG_CHECKS = [(*found.values(), error) for columns, found, error in WRONG if not columns]


@pytest.fixture(scope="module", autouse=True)
def functions_of_users(spark):
    spark.udf.register("mine", lambda a: a, LongType())
    spark.sql("CREATE TEMPORARY FUNCTION above(a INT) RETURNS BOOLEAN RETURN a > 0")
    spark.sql("CREATE TEMPORARY FUNCTION one() RETURNS BIGINT RETURN 1")
    yield
    for name in ("mine", "above", "one"):
        spark.sql(f"DROP TEMPORARY FUNCTION {name}")


def change(table, *, read: bool = False, **changes):
    with table.transaction() as txn:
        if read:
            txn.read_whole_table()
        txn.update_metadata(**changes)
        return txn.commit("SET TBLPROPERTIES")


def refused(error_class: str):
    return pytest.raises(InvalidCommand, match=rf"\[{error_class}")


class TestWhatNoRowCouldSatisfy:
    @pytest.mark.parametrize(("columns", "properties", "error_class"), WRONG)
    def test_is_no_tables_definition(self, lake, create, columns, properties, error_class):
        schema = StructType([A, B, *columns])
        with refused(error_class):
            lake.create_table("main.rules.none", schema=schema, properties=properties)
        assert not list(lake.tables("main.rules.none"))
        table = create("a int, b string")
        with refused(error_class):
            change(table, schema=schema, set_properties=properties)
        assert table.head().version == 0

    @pytest.mark.parametrize(
        ("sql", "error_class"), [(s, e) for c, p, e in WRONG for s in p.values() if not c]
    )
    def test_is_none_of_a_tables_that_is_made_of_rows(self, spark, lake, create, sql, error_class):
        df = spark.range(1).selectExpr("CAST(id AS int) AS a")
        with refused(error_class):
            lake.create_table("main.rules.none", as_select=df, properties=check(sql))
        table = create("a int")
        with refused(error_class):
            table.replace(df, properties=check(sql))
        with refused(error_class):
            table.alter(spark=spark).add_constraint("c", sql)
        assert not data_files(table)

    def test_is_found_in_any_thread(self, spark, create):
        table = create("a int, b string")
        found = []

        def run():
            try:
                change(table, set_properties=check("nowhere(a)"))
            except InvalidCommand as error:
                found.append(error.error_class)

        thread = Thread(target=run)
        thread.start()
        thread.join()
        assert found == ["UNRESOLVED_ROUTINE"]

    def test_comments_inside_of_a_struct_are_none_of_its_type(self, lake):
        x = StructField("x", IntegerType(), True, {"comment": "a number"})
        sql = {"delta.generationExpression": "named_struct('x', a)"}
        schema = StructType([A, StructField("s", StructType([x]), True, sql)])
        lake.create_table("main.rules.struct", schema=schema)

    def test_all_else_is_taken(self, spark, lake, create):
        columns = [generated("CAST(a AS long) * 2"), default("CAST(pi() AS int)")]
        properties = {
            **DEFAULTS,
            **check("b RLIKE '^x' AND exists(split(b, ''), c -> c = 'y')"),
        }
        table = lake.create_table(
            "main.rules.some", schema=StructType([A, B, *columns]), properties=properties
        )
        table.append(spark.sql("SELECT 1 AS a, 'xy' AS b"))
        assert rows(table.read(spark)) == [(1, "xy", 2, 3)]
        other = create("a int, b string", **DEFAULTS)
        del properties[next(iter(DEFAULTS))]
        change(other, schema=StructType([A, B, *columns]), set_properties=properties)
        other.append(spark.sql("SELECT 1 AS a, 'xy' AS b"))
        assert rows(other.read(spark)) == [(1, "xy", 2, 3)]

    def test_what_a_table_has_is_not_asked_again(self, spark, create):
        table = create("a int, b string", **check("a > 0"))
        table.append(spark.sql("SELECT 1 AS a, 'x' AS b"))
        change(table, set_properties={"mine": "1"})
        change(table, schema=StructType([A, B, StructField("n", StringType())]))
        assert table.head().version == 3


class TestRowsThatThereAre:
    NEW = (
        {"set_properties": check("a > 5")},
        {"schema": StructType([A, B, generated("CAST(a AS long)")])},
        {"schema": StructType([A, B, StructField("n", StringType(), False)])},
    )

    @pytest.fixture
    def table(self, spark, create):
        table = create("a int, b string")
        table.append(spark.sql("SELECT 1 AS a, 'x' AS b"))
        return table

    @pytest.mark.parametrize("new", NEW)
    def test_are_not_of_a_rule_that_nobody_read_them_for(self, spark, table, new):
        with pytest.raises(InvalidProposal, match=r"reads\.whole_table|no null in the column 'n'"):
            change(table, **new)
        assert table.head().version == 1
        assert rows(table.read(spark)) == [(1, "x")]

    @pytest.mark.parametrize("new", NEW)
    def test_an_empty_table_has_none(self, create, new):
        assert change(create("a int, b string"), **new).version == 1

    def test_a_large_commit_has_read_them(self, spark, table):
        txn = table.transaction()
        txn.update_metadata(set_properties=check("a > 5"))
        with pytest.raises(InvalidProposal, match="has read the whole table"):
            txn.commit_large([], "SET TBLPROPERTIES")

    def test_one_that_broke_off_has_not(self, spark, table):
        txn = table.transaction()
        with pytest.raises(ZeroDivisionError):
            txn.commit_large((1 / 0 for _ in range(1)), "X")
        txn.update_metadata(set_properties=check("a > 5"))
        with pytest.raises(InvalidProposal, match=r"reads\.whole_table"):
            txn.commit("ADD CONSTRAINT")

    def test_who_read_them_makes_the_rule_of_those_rows_alone(self, spark, table):
        txn = table.transaction()
        assert txn.read(spark).where("NOT a > 0").count() == 0
        txn.update_metadata(set_properties=check("a > 0"))
        table.append(spark.sql("SELECT -1 AS a, 'y' AS b"))
        with pytest.raises(ConflictError):
            txn.commit("ADD CONSTRAINT")
        assert change(table, read=True, set_properties=check("a > -5")).version == 3

    def test_a_rule_that_a_version_had_comes_back_with_its_rows(self, spark, table):
        table.alter(spark=spark).add_constraint("c", "a > 0")
        table.alter(spark=spark).drop_constraint("c")
        table.append(spark.sql("SELECT -1 AS a, 'y' AS b"))
        table.restore(version=2)
        assert table.head().metadata.configuration[PREFIX + "c"] == "a > 0"
        assert rows(table.read(spark)) == [(1, "x")]

    def test_a_clone_has_no_other_rules_than_its_source(self, spark, lake, table):
        target = "main.rules.cloned"
        with refused("DELTA_ADD_CONSTRAINTS"):
            table.clone(target, spark=spark, properties=check("a > 5"))
        table.alter(spark=spark).add_constraint("c", "a > 0")
        table.clone(target, spark=spark, properties=check("a > 0"))
        assert rows(lake.table(target).read(spark)) == [(1, "x")]

    def test_neither_has_a_folder_that_is_converted(self, session, lake, tmp_path):
        session.sql("SELECT 1 AS a").write.parquet(str(tmp_path / "t"))
        session.conf.set("spark.databricks.delta.properties.defaults.constraints.c", "a > 5")
        session.conf.set("spark.tidegate.url", lake.url)
        with refused("DELTA_ADD_CONSTRAINTS"):
            DeltaTable.convertToDelta(session, f"parquet.`{tmp_path}/t`", name="main.rules.folder")
        assert not (tmp_path / "t" / "_delta_log").exists()
