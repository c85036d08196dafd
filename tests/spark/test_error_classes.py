"""Delta's names of errors, which programs go by: `error_class` of what the client raises."""

import pytest

from tests.spark.tables import rows
from tidegate import TidegateError


@pytest.fixture
def table(spark, create, copied):
    """A table of the rows (1, 'x') and (2, 'y')."""

    def make():
        table = create("a int, s string")
        table.append(spark.sql("SELECT 1 AS a, 'x' AS s UNION ALL SELECT 2, 'y'"))
        return table

    return copied(make)


CALLS = {
    "DELTA_ILLEGAL_OPTION": lambda t, df: t.append(df, mergeSchema="maybe"),
    "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES": lambda t, df: t.append(
        df.selectExpr("*", "struct(1 AS `b c`) AS t"), mergeSchema=True
    ),
    "DELTA_FAILED_RECOGNIZE_PREDICATE": lambda t, df: t.overwrite(df, replace_where="a = = 1"),
    "DELTA_PARTITION_COLUMN_NOT_FOUND": lambda t, df: t.overwrite(
        df, partition_by=["p"], overwriteSchema=True
    ),
    "DELTA_VERSION_NOT_FOUND": lambda t, df: t.read(df.sparkSession, version=9),
    "DELTA_ONEOF_IN_TIMETRAVEL": lambda t, df: t.read(df.sparkSession, version=1, timestamp=5),
    "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION": lambda t, df: t.read(
        df.sparkSession, timestamp=0
    ),
    "UNRESOLVED_COLUMN.WITH_SUGGESTION": lambda t, df: t.read(df.sparkSession, where="b = 1"),
    "DELTA_CANNOT_RESTORE_TABLE_VERSION": lambda t, df: t.restore(version=9),
    "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE": lambda t, df: (
        t.merge(df.union(df).alias("s"), "t.a = s.a", alias="t").whenMatchedUpdateAll().execute()
    ),
}


@pytest.mark.parametrize("error_class", CALLS)
def test_what_delta_has_a_name_for_has_it(spark, table, error_class):
    df = spark.sql("SELECT 1 AS a, 'z' AS s")
    with pytest.raises(TidegateError) as refused:
        CALLS[error_class](table, df)
    assert refused.value.error_class == error_class
    assert str(refused.value).startswith(f"[{error_class}] ")
    assert rows(table.read(spark)) == [(1, "x"), (2, "y")]


def test_tables_that_are_not_there_or_take_appends_alone(spark, lake, create):
    with pytest.raises(TidegateError) as missing:
        lake.table("main.test.nothing")
    assert missing.value.error_class == "DELTA_TABLE_NOT_FOUND"
    table = create("a int", **{"delta.appendOnly": "true"})
    with pytest.raises(TidegateError) as refused:
        table.delete(spark=spark)
    assert refused.value.error_class == "DELTA_CANNOT_MODIFY_APPEND_ONLY"
