"""`DeltaTable.create` and its siblings: tables made of definitions, part by part."""

import inspect
from itertools import count

import pytest
from pyspark.sql.types import IntegerType, StructField, StructType

from tests.spark.tables import actions, independent, rows
from tidegate import InvalidProposal, InvalidRequest
from tidegate.spark import InvalidCommand
from tidegate.spark.tables import DeltaTable, DeltaTableBuilder, IdentityGenerator
from tidegate_protocol.features.table_features import implied_features

_PARTS = {
    "tableName": ("identifier",),
    "location": ("location",),
    "comment": ("comment",),
    "addColumn": (
        "colName",
        "dataType",
        "nullable",
        "generatedAlwaysAs",
        "generatedByDefaultAs",
        "comment",
    ),
    "addColumns": ("cols",),
    "partitionedBy": ("cols",),
    "clusterBy": ("cols",),
    "property": ("key", "value"),
    "execute": (),
}
"""Of Delta's Python API: names, and parameters in their order."""
_numbers = count(1)


@pytest.fixture
def name(session, lake) -> str:
    session.conf.set("spark.tidegate.url", lake.url)
    return f"main.built.t{next(_numbers)}"


def refused(error_class: str):
    return pytest.raises(InvalidCommand, match=rf"\[{error_class}\]")


def test_parts_have_the_parameters_that_they_have_in_delta():
    for part, parameters in _PARTS.items():
        found = tuple(inspect.signature(getattr(DeltaTableBuilder, part)).parameters)
        assert tuple(each for each in found if each != "self") == parameters, part


class TestCreate:
    def test_all_that_a_table_may_be(self, session, lake, name):
        table = (
            DeltaTable.create(session)
            .tableName(name)
            .comment("numbers")
            .addColumn("id", "BIGINT", generatedAlwaysAs=IdentityGenerator(start=10, step=5))
            .addColumn("v", "VARCHAR(3)", nullable=False, comment="text")
            .addColumn("length", "INT", generatedAlwaysAs="length(v)")
            .addColumns(StructType([StructField("p", IntegerType())]))
            .partitionedBy("p")
            .property("owner", "ann")
            .execute()
        )
        session.createDataFrame([("abc", 1), ("d", 1)], "v string, p int").createTempView("new")
        plain = lake.table(name)
        plain.append(session.table("new").coalesce(1))
        session.catalog.dropTempView("new")
        assert rows(table.toDF()) == [(10, "abc", 3, 1), (15, "d", 1, 1)]
        assert len(independent(plain)) == 2
        head = plain.head()
        assert (head.metadata.description, head.properties) == ("numbers", {"owner": "ann"})
        assert head.partition_columns == ("p",)
        text = plain.schema.field("v")
        assert not text.nullable
        assert text.metadata == {"comment": "text", "__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}

    def test_with_the_sessions_defaults_and_at_a_place(self, session, lake, name):
        session.conf.set("spark.databricks.delta.properties.defaults.appendOnly", "true")
        other = lake.create_table(
            f"{name}_other", schema=StructType([StructField("a", IntegerType())])
        )
        place = f"{other.location}_beside"
        builder = DeltaTable.create(session).tableName(name).location(place)
        builder.addColumn("a", IntegerType()).execute()
        found = lake.table(name)
        assert (found.location, found.head().properties) == (place, {"delta.appendOnly": "true"})
        path = place.removeprefix("file://")
        assert DeltaTable.isDeltaTable(session, path)
        again = DeltaTable.createIfNotExists(session).location(path).addColumn("b", "INT")
        assert again.execute().toDF().columns == ["a"]

    def test_once(self, session, lake, name):
        def builder(begin):
            return begin(session).tableName(name).addColumn("a", "INT")

        builder(DeltaTable.createIfNotExists).execute()
        builder(DeltaTable.createIfNotExists).addColumn("b", "INT").execute()
        assert lake.table(name).version == 0
        with refused("DELTA_TABLE_ALREADY_EXISTS"):
            builder(DeltaTable.create).execute()
        with refused("DELTA_CREATE_TABLE_MISSING_TABLE_NAME_OR_LOCATION"):
            DeltaTable.create(session).addColumn("a", "INT").execute()


class TestReplace:
    def test_leaves_nothing_but_the_history(self, session, lake, name):
        DeltaTable.create(session).tableName(name).comment("first").addColumn("a", "INT").property(
            "owner", "ann"
        ).execute()
        table = lake.table(name)
        table.append(session.sql("SELECT 1 AS a"))
        builder = DeltaTable.replace(session).tableName(name)
        builder.addColumn("b", "STRING").addColumn("p", "INT").partitionedBy(["p"])
        found = builder.property("delta.columnMapping.mode", "name").execute()
        assert found.toDF().columns == ["b", "p"]
        assert rows(found.toDF()) == []
        head = table.head()
        assert (head.metadata.description, head.partition_columns) == (None, ("p",))
        assert head.properties == {
            "delta.columnMapping.mode": "name",
            "delta.columnMapping.maxColumnId": "2",
        }
        assert len(actions(table, 2, "remove")) == 1
        commit = table.history(limit=1)[0]
        assert commit.operation == "REPLACE TABLE"
        assert commit.operation_parameters["partitionBy"] == '["p"]'
        table.append(session.sql("SELECT 'x' AS b, 1 AS p"))
        assert rows(table.read(session)) == [("x", 1)]
        assert rows(table.read(session, version=1)) == [(1,)]

    def test_keeps_the_history_safe(self, session, lake, name):
        DeltaTable.create(session).tableName(name).addColumn("a", "INT").property(
            "delta.enableDeletionVectors", "true"
        ).execute()
        table = lake.table(name)
        table.alter(spark=session).drop_feature("deletionVectors")
        safe = {"delta.requireCheckpointProtectionBeforeVersion": "2"}
        assert table.head().properties == safe
        DeltaTable.replace(session).tableName(name).addColumn("b", "INT").execute()
        assert table.head().properties == safe
        table.replace(session.sql("SELECT 1 AS c"))
        assert table.head().properties == safe

    def test_or_creates(self, session, lake, name):
        def builder(begin):
            return begin(session).tableName(name).addColumn("a", "INT")

        with refused("DELTA_CANNOT_REPLACE_MISSING_TABLE"):
            builder(DeltaTable.replace).execute()
        builder(DeltaTable.createOrReplace).execute()
        features = {
            "delta.enableDeletionVectors": "true",
            "delta.feature.v2Checkpoint": "supported",
        }
        replacing = builder(DeltaTable.createOrReplace)
        for key, value in features.items():
            replacing = replacing.property(key, value)
        replacing.execute()
        table = lake.table(name)
        assert table.history(limit=1)[0].operation == "CREATE OR REPLACE TABLE"
        assert {"deletionVectors", "v2Checkpoint"} <= implied_features(table.head().protocol)

    def test_is_refused_as_a_new_table_is(self, session, lake, name):
        DeltaTable.create(session).tableName(name).addColumn("a", "INT").property(
            "delta.appendOnly", "true"
        ).execute()
        with pytest.raises(InvalidProposal, match="append-only"):
            DeltaTable.replace(session).tableName(name).addColumn("a", "INT").execute()
        lake.table(name).alter(spark=session).unset_properties("delta.appendOnly")
        bad = DeltaTable.replace(session).tableName(name)
        with pytest.raises(InvalidRequest, match="DELTA_NESTED_NOT_NULL_CONSTRAINT"):
            bad.addColumn("a", "ARRAY<STRUCT<x: INT NOT NULL>>").execute()
        assert lake.table(name).version == 1


class TestParts:
    @pytest.mark.parametrize(
        ("part", "error", "words"),
        [
            (lambda b: b.tableName(1), TypeError, "Identifier must be str"),
            (lambda b: b.location(1), TypeError, "Location must be str"),
            (lambda b: b.comment(1), TypeError, "Table comment must be str"),
            (lambda b: b.addColumn(1, "INT"), TypeError, "Column name must be str"),
            (lambda b: b.addColumn("a", 1), TypeError, "Column data type"),
            (lambda b: b.addColumn("a", "INT", nullable=1), TypeError, "nullable must be bool"),
            (lambda b: b.addColumn("a", "INT", comment=1), TypeError, "comment must be str"),
            (lambda b: b.addColumn("a", "INT", generatedAlwaysAs=1), TypeError, "always as"),
            (lambda b: b.addColumn("a", "INT", generatedByDefaultAs="1"), TypeError, "default"),
            (
                lambda b: b.addColumn("a", "INT", True, "1", IdentityGenerator()),
                ValueError,
                "cannot both be set",
            ),
            (
                lambda b: b.addColumn("a", "INT", True, IdentityGenerator(step=0)),
                ValueError,
                "step to be non-zero",
            ),
            (lambda b: b.addColumns(["a"]), TypeError, "addColumns must be StructType"),
            (lambda b: b.partitionedBy(1), TypeError, "Partitioning column must be str"),
            (lambda b: b.property(1, "x"), TypeError, "Key of property must be str"),
            (lambda b: b.property("x", 1), TypeError, "Value of property must be str"),
            (lambda b: b.clusterBy(1), TypeError, "Clustering column must be str"),
            (lambda b: b.addColumn("a", "NOTHING"), InvalidCommand, "UNSUPPORTED_DATATYPE"),
        ],
    )
    def test_are_checked_as_in_delta(self, spark, part, error, words):
        with pytest.raises(error, match=words):
            part(DeltaTable.create(spark))
