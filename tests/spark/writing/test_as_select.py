"""Tables made of DataFrames: created with their rows, and replaced by them."""

import json
import warnings

import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from tests.spark.tables import actions, data_files, independent, rows
from tidegate import InvalidRequest, TableAlreadyExists
from tidegate.spark import InvalidCommand, InvalidRows, SchemaMismatch
from tidegate.spark.data_files.staging import TransactionFolder
from tidegate.version import ENGINE_INFO
from tidegate_protocol.features.table_features import implied_features


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


@pytest.mark.parametrize(("is_managed", "count"), [(True, 3), (False, 0)])
def test_the_history_says_what_was_written(session, lake, place, count, is_managed):
    session.conf.set("spark.databricks.delta.commitInfo.userMetadata", "why")
    name, location = place
    properties = {"delta.appendonly": "true", "delta.feature.v2Checkpoint": "supported"}
    table = lake.create_table(
        name,
        as_select=session.range(count).selectExpr("id AS A", "id AS b"),
        cluster_by="a",
        properties=properties,
        comment="made",
        location=None if is_managed else location,
    )
    (commit,) = table.history()
    assert commit.operation == "CREATE TABLE AS SELECT"
    adds = actions(table, 0, "add")
    assert sum(json.loads(add["stats"])["numRecords"] for add in adds) == count
    metrics = dict(commit.operation_metrics)
    assert all(int(metrics.pop(f"{name}TimeMs")) >= 0 for name in ("execution", "scan", "rewrite"))
    assert metrics == {
        "numFiles": str(len(adds)),
        "numOutputRows": str(count),
        "numOutputBytes": str(sum(add["size"] for add in adds)),
    }
    assert (commit.user_metadata, commit.engine_info) == ("why", ENGINE_INFO)
    assert commit.operation_parameters == {
        "isManaged": str(is_managed).lower(),
        "description": "made",
        "partitionBy": "[]",
        "clusterBy": '["A"]',
        "properties": '{"delta.appendOnly": "true"}',
    }


@pytest.mark.parametrize("catalog_managed", [False, True])
def test_the_history_tells_the_properties_that_columns_bring(spark, lake, place, catalog_managed):
    """As of a table that is created without rows, or replaced by such a one."""
    name, location = place
    df = spark.sql("SELECT 1 a, named_struct('b', 2) s, 3 P")
    asked = {"delta.columnMapping.mode": "name", "delta.feature.v2Checkpoint": "enabled"}
    wanted = {"partition_by": ["p"], "properties": asked}
    made = {"catalog_managed": catalog_managed, **wanted}
    table = lake.create_table(name, as_select=df, location=location, **made)
    empty = lake.create_table(f"{name}_2", schema=df.schema, location=f"{location}_2", **made)
    told, expected = (each.history()[0].operation_parameters for each in (table, empty))
    assert '"delta.columnMapping.maxColumnId": "4"' in told["properties"]
    assert json.loads(told["properties"]) == json.loads(expected["properties"])
    assert told["partitionBy"] == expected["partitionBy"]
    table.replace(df, **wanted)
    told = table.history(limit=1)[0].operation_parameters
    configuration = dict(table.head().metadata.configuration)
    # The service gives it to a catalog-managed table by itself.
    configuration.pop("delta.enableInCommitTimestamps", None)
    assert json.loads(told["properties"]) == configuration
    assert configuration["delta.columnMapping.maxColumnId"] == "8"
    assert told["partitionBy"] == '["P"]'


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


@pytest.mark.parametrize(
    ("spelling", "mode"),
    [("delta.columnMapping.mode", "ID"), ("delta.columnmapping.mode", "name")],
)
def test_mapped_columns_are_written_by_what_files_call_them(spark, lake, place, spelling, mode):
    name, location = place
    df = spark.sql("SELECT 1 `a b`, named_struct('x', 2) s, 'q' p")
    table = lake.create_table(
        name, as_select=df, location=location, partition_by="P", properties={spelling: mode}
    )
    assert rows(table.read(spark)) == rows(df)
    fields = json.loads(table.head().metadata.schema_string)["fields"]
    physical = [field["metadata"]["delta.columnMapping.physicalName"] for field in fields]
    (add,) = actions(table, 0, "add")
    assert add["partitionValues"] == {physical[2]: "q"}
    assert json.loads(add["stats"])["minValues"].keys() == set(physical[:2])
    properties = table.head().properties
    assert properties["delta.columnMapping.mode"] == mode
    assert properties["delta.columnMapping.maxColumnId"] == "4"
    table.append(df)
    assert rows(table.read(spark)) == rows(df) * 2


def test_properties_are_the_sessions_defaults_whatever_their_case(session, lake, create, place):
    name, location = place
    session.conf.set("spark.databricks.delta.properties.defaults.APPENDONLY", "true")
    session.conf.set("spark.databricks.delta.properties.defaults.columnMapping.MODE", "name")
    given = {"delta.APPENDonly": "false"}
    table = lake.create_table(name, as_select=session.range(1), location=location, properties=given)
    replaced = create("a int")
    replaced.replace(session.range(1), properties=given)
    for found in (table, replaced):
        assert found.head().properties["delta.appendOnly"] == "false"
        assert found.head().properties["delta.columnMapping.mode"] == "name"
        assert rows(found.read(session)) == [(0,)]


def test_what_is_given_goes_before_the_sessions_default_however_it_is_spelt(session, lake, place):
    """Also of features, whose names the service takes once."""
    defaults = "spark.databricks.delta.properties.defaults"
    session.conf.set(f"{defaults}.feature.deletionVectors", "supported")
    given = {"delta.feature.deletionvectors": "supported"}
    name, location = place
    table = lake.create_table(name, as_select=session.range(2), location=location, properties=given)
    assert "deletionVectors" in table.head().protocol.writer_features


def test_defaults_of_columns_are_asked_for_in_any_case(spark, lake, place):
    name, location = place
    df = spark.range(1).select(F.col("id").alias("a", metadata={"CURRENT_DEFAULT": "7"}))
    properties = {"delta.feature.ALLOWcolumnDEFAULTS": "enabled"}
    table = lake.create_table(name, as_select=df, location=location, properties=properties)
    assert '"CURRENT_DEFAULT":"7"' in table.head().metadata.schema_string


def test_what_nested_fields_tell_of_another_table_stays_there(spark, lake, create, place):
    name, location = place
    mapped = {"delta.columnMapping.mode": "name"}
    other = create("s struct<a: int COMMENT 'kept'>, l array<struct<b: int>>", **mapped)
    other.append(spark.sql("SELECT named_struct('a', 1) s, array(named_struct('b', 2)) l"))
    df = other.read(spark)
    table = lake.create_table(name, as_select=df, location=location)
    schema = table.head().metadata.schema_string
    assert ("delta." in schema, '"comment":"kept"' in schema) == (False, True)
    assert rows(table.read(spark)) == rows(df)
    evolving = create("s struct<x: int>")
    evolving.append(df, mergeSchema=True)
    assert "delta." not in evolving.head().metadata.schema_string


@pytest.fixture
def untouched(spark):
    """Rows that nobody may ask for."""
    return spark.sql("SELECT cast(raise_error('a job ran') AS int) AS a, 1 AS p")


@pytest.mark.parametrize("at", ["a place", None])
def test_a_name_that_is_taken_or_none_is_refused_before_a_job(lake, create, place, untouched, at):
    taken = create("a int")
    location = at and place[1]
    for name, error in ((taken.name, TableAlreadyExists), ("no-name", InvalidRequest)):
        with pytest.raises(error):
            lake.create_table(name, as_select=untouched, location=location)
    assert not data_files(taken)


def test_a_name_that_another_took_meanwhile_leaves_no_file(spark, lake, place, monkeypatch):
    name, location = place[0], f"{place[1]}_elsewhere"
    write = TransactionFolder.write

    def overtaken(folder, df):
        lake.create_table(name, schema=StructType.fromDDL("b int"))
        return write(folder, df)

    with monkeypatch.context() as patched:
        patched.setattr(TransactionFolder, "write", overtaken)
        with pytest.raises(TableAlreadyExists):
            lake.create_table(name, as_select=spark.range(3), location=location)
    table = lake.create_table(f"{name}_b", as_select=spark.range(2), location=location)
    assert len(data_files(table)) == len(actions(table, 0, "add"))


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        (["a", "p"], {"partition_by": ["q"]}, "partition column 'q' is not a column"),
        (["a", "p"], {"partition_by": ["p", "P"]}, "'p' is named twice"),
        (["a", "p"], {"partition_by": ["p", "a"]}, "every column is a partition column"),
        (["a", "p"], {"properties": {"delta.apendOnly": "true"}}, "delta.apendOnly"),
        (["a", "p"], {"properties": {"delta.appendOnly": "perhaps"}}, "true or false"),
        (["a", "p"], {"properties": {"note": "x" * 70_000}}, "note"),
        (["a b", "p"], {}, "the character ' '"),
        (["a", "A"], {}, "two fields of this name"),
    ],
)
def test_a_definition_of_no_table_is_refused_before_a_job(
    lake, create, place, untouched, *, columns, options, words
):
    df = untouched.toDF(*columns)
    table = create("a int")
    with pytest.raises(InvalidRequest, match=words):
        table.replace(df, **options)
    with pytest.raises(InvalidRequest, match=words):
        lake.create_table(place[0], as_select=df, location=place[1], **options)
    assert (table.version, data_files(table)) == (0, set())


def test_rows_that_break_a_constraint_make_no_table(spark, lake, place):
    name, location = place
    properties = {"delta.constraints.small": "id < 2"}
    with pytest.raises(InvalidRows, match="small"):
        lake.create_table(name, as_select=spark.range(3), location=location, properties=properties)
    assert name not in [table.name for table in lake.tables()]


def test_what_is_raised_once_there_is_a_table_leaves_its_files(spark, lake, place):
    name, location = place
    properties = {"delta.sampleRetentionDuration": "interval 1 day"}
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*delta.sampleRetentionDuration has no effect")
        with pytest.raises(UserWarning, match="no effect"):
            lake.create_table(
                name, as_select=spark.range(3), location=location, properties=properties
            )
    assert rows(lake.table(name).read(spark)) == [(0,), (1,), (2,)]


def test_without_a_place_it_is_where_the_service_puts_tables(spark, lake, place):
    name, _ = place
    table = lake.create_table(name, as_select=spark.range(3))
    empty = lake.create_table(f"{name}_2", schema=table.schema)
    assert empty.location == f"{table.location}_2"
    assert rows(table.read(spark)) == [(0,), (1,), (2,)]


def test_a_table_has_a_schema_or_rows(lake, place):
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

    def test_a_comment_that_is_not_given_is_none(self, spark, create):
        table = create("a int")
        with table.transaction() as txn:
            txn.update_metadata(comment="of before")
            txn.commit("SET TBLPROPERTIES")
        table.replace(spark.sql("SELECT 1 a"))
        assert table.head().metadata.description is None

    def test_columns_that_are_mapped_get_ids_that_the_table_never_had(self, spark, create):
        table = create("a int, b int", **{"delta.columnMapping.mode": "name"})
        table.replace(spark.sql("SELECT 1 a"), properties={"delta.columnMapping.mode": "name"})
        (field,) = json.loads(table.head().metadata.schema_string)["fields"]
        assert field["metadata"]["delta.columnMapping.id"] == 3
        assert table.head().properties["delta.columnMapping.maxColumnId"] == "3"
        assert rows(table.read(spark)) == [(1,)]

    def test_features_and_versions_that_are_asked_for_are_supported(self, spark, create):
        table = create("a int", **{"delta.feature.v2Checkpoint": "supported"})
        table.replace(
            spark.sql("SELECT 1 b"),
            properties={
                "delta.feature.DeletionVectors": "supported",
                "delta.minWriterVersion": "4",
            },
            cluster_by=["b"],
        )
        head = table.head()
        asked = {"deletionVectors", "v2Checkpoint", "clustering", "domainMetadata"}
        assert asked | {"changeDataFeed", "generatedColumns"} <= implied_features(head.protocol)
        assert dict(head.properties) == {}
        assert rows(table.read(spark)) == [(1,)]

    def test_features_that_nobody_knows_are_refused_before_a_job(self, create, untouched):
        table = create("a int")
        with pytest.raises(InvalidCommand, match="DELTA_UNSUPPORTED_FEATURES_IN_CONFIG"):
            table.replace(untouched, properties={"delta.feature.nothing": "supported"})
        assert (table.version, data_files(table)) == (0, set())

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
