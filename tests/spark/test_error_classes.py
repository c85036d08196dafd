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


PROPERTIES = {
    "DELTA_UNKNOWN_CONFIGURATION": {"delta.apendOnly": "true"},
    "DELTA_INVALID_ISOLATION_LEVEL": {"delta.isolationLevel": "ReadCommitted"},
    "DELTA_UNSUPPORTED_FEATURE_STATUS": {"delta.feature.rowTracking": "on"},
    "DELTA_PROTOCOL_PROPERTY_NOT_INT": {"delta.minReaderVersion": "two"},
}


@pytest.mark.parametrize("error_class", PROPERTIES)
def test_properties_that_no_table_can_have(spark, lake, create, error_class):
    table = create("a int")
    given, name = PROPERTIES[error_class], f"{table.name}_2"
    df = spark.range(1)
    for call in (
        lambda: table.alter(spark=spark).set_properties(given),
        lambda: lake.create_table(name, schema=df.schema, properties=given),
        lambda: lake.create_table(name, as_select=df, properties=given),
        lambda: table.replace(df, properties=given),
        lambda: table.clone(name, spark=spark, properties=given),
    ):
        with pytest.raises(TidegateError) as refused:
            call()
        assert refused.value.error_class == error_class
    assert table.version == 0


FEED = {"delta.enableChangeDataFeed": "true"}


def test_new_columns_that_the_change_data_feed_has(spark, create):
    table = create("a int", **FEED)
    table.append(spark.sql("SELECT 1 AS a"))
    changes = table.changes(spark, from_version=1)
    for call in (
        lambda: table.append(changes, mergeSchema=True),
        lambda: table.overwrite(changes, overwriteSchema=True),
        lambda: table.replace(changes, properties=FEED),
        lambda: table.alter(spark=spark).add_columns("_change_type string"),
    ):
        with pytest.raises(TidegateError) as refused:
            call()
        assert refused.value.error_class == "RESERVED_CDC_COLUMNS_ON_WRITE"
    assert (table.version, rows(table.read(spark))) == (1, [(1,)])


def test_a_change_data_feed_over_columns_that_it_has(spark, lake, create):
    table = create("_change_type int")
    df = spark.sql("SELECT 1 AS _change_type")
    name = f"{table.name}_2"
    for call in (
        lambda: table.alter(spark=spark).set_properties(FEED | {"delta.enableRowTracking": "true"}),
        lambda: table.replace(df, properties=FEED),
        lambda: table.clone(name, spark=spark, properties=FEED),
        lambda: lake.create_table(name, schema=df.schema, properties=FEED),
        lambda: lake.create_table(name, as_select=df, properties=FEED),
    ):
        with pytest.raises(TidegateError) as refused:
            call()
        assert refused.value.error_class == "DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS"
    assert table.version == 0
