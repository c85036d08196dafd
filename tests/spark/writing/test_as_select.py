"""Tables made of DataFrames: created with their rows, and replaced by them."""

import pytest

from tests.spark.tables import actions, data_files, independent, rows
from tidegate import InvalidRequest, TableAlreadyExists
from tidegate.spark import InvalidRows, SchemaMismatch


@pytest.fixture
def place(create):
    """A name and a location that no table has."""
    table = create("a int")
    return f"{table.name}_made", f"{table.location}_made"


@pytest.mark.parametrize("catalog_managed", [False, True])
def test_version_0_has_the_rows(spark, lake, place, catalog_managed):
    name, location = place
    df = spark.sql("SELECT * FROM VALUES (1, 'x'), (2, 'y') AS t(a, p)")
    table = lake.create_table(
        name,
        as_select=df,
        location=location,
        partition_by="p",
        properties={"delta.appendOnly": "true"},
        catalog_managed=catalog_managed,
    )
    assert table.version == 0
    assert table.history()[0].operation == "CREATE TABLE AS SELECT"
    assert rows(table.read(spark)) == [(1, "x"), (2, "y")]
    assert table.partition_columns == ("p",)
    assert table.head().properties["delta.appendOnly"] == "true"


def test_the_sessions_defaults_are_the_properties_of_new_tables(session, lake, place):
    name, location = place
    defaults = "spark.databricks.delta.properties.defaults"
    session.conf.set(f"{defaults}.appendOnly", "true")
    session.conf.set(f"{defaults}.checkpointInterval", "7")
    table = lake.create_table(
        name,
        as_select=session.range(1),
        location=location,
        properties={"delta.checkpointInterval": "9"},
    )
    properties = table.head().properties
    assert properties["delta.appendOnly"] == "true"
    assert properties["delta.checkpointInterval"] == "9"


def test_a_name_that_is_taken_leaves_no_file(spark, lake, create, place):
    taken = create("a int")
    _, location = place
    with pytest.raises(TableAlreadyExists):
        lake.create_table(taken.name, as_select=spark.range(3), location=location)
    table = lake.create_table(f"{taken.name}_b", as_select=spark.range(2), location=location)
    assert len(data_files(table)) == len(actions(table, 0, "add"))


def test_rows_that_break_a_constraint_make_no_table(spark, lake, place):
    name, location = place
    properties = {"delta.constraints.small": "id < 2"}
    with pytest.raises(InvalidRows, match="small"):
        lake.create_table(name, as_select=spark.range(3), location=location, properties=properties)
    assert name not in [table.name for table in lake.tables()]


def test_a_location_is_asked_for(spark, lake, place):
    with pytest.raises(ValueError, match="location"):
        lake.create_table(place[0], as_select=spark.range(1))
    with pytest.raises(ValueError, match="schema or as_select"):
        lake.create_table(place[0])


def test_not_null_inside_of_a_list_is_refused(create):
    with pytest.raises(InvalidRequest, match=r"a\.element\.b is NOT NULL") as refusal:
        create("a array<struct<b: int NOT NULL>>")
    assert refusal.value.error_class == "DELTA_NESTED_NOT_NULL_CONSTRAINT"


class TestReplace:
    def test_everything_but_the_history_is_replaced_in_one_commit(self, spark, create):
        table = create("a int, p int", "p", **{"delta.appendOnly": "false", "owner": "me"})
        table.append(spark.sql("SELECT 1 a, 1 p"))
        df = spark.sql("SELECT 'x' name, 5 month")
        receipt = table.replace(df, partition_by=["month"], properties={"owner": "you"})
        assert receipt.version == 2
        assert independent(table) == [{"name": "x", "month": 5}]
        assert table.partition_columns == ("month",)
        assert dict(table.head().properties)["owner"] == "you"
        assert "delta.appendOnly" not in table.head().properties
        assert table.history(limit=1)[0].operation == "REPLACE TABLE AS SELECT"
        assert rows(table.read(spark, version=1)) == [(1, 1)]

    def test_a_column_without_a_type_is_refused(self, spark, create):
        table = create("a int")
        with pytest.raises(SchemaMismatch, match="VOID"):
            table.replace(spark.sql("SELECT null b"))
        assert table.version == 0


def test_overwrite_schema_may_partition_otherwise(spark, create):
    table = create("a int, p int", "p")
    table.append(spark.sql("SELECT 1 a, 1 p"))
    table.overwrite(spark.sql("SELECT 2 a, 3 q"), partition_by=["q"], overwriteSchema=True)
    assert table.partition_columns == ("q",)
    assert independent(table) == [{"a": 2, "q": 3}]
    with pytest.raises(SchemaMismatch, match="Partition columns do not match"):
        table.append(spark.sql("SELECT 2 a, 3 q"), partition_by=["a"])
