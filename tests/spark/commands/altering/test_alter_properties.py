"""ALTER TABLE: constraints, properties and the comment."""

import json

import pytest

from tests.spark.tables import independent, overtake, rows
from tidegate import ConcurrentAppendException, InvalidRequest
from tidegate.spark import InvalidCommand, InvalidRows


@pytest.fixture
def numbers(spark, create, copied):
    def make():
        table = create("n int, v string")
        table.append(spark.sql("SELECT * FROM VALUES (1, 'a'), (2, 'b') AS t(n, v)"))
        return table

    return copied(make)


def refused(error_class: str):
    return pytest.raises(InvalidCommand, match=rf"\[{error_class}\]")


class TestConstraints:
    def test_hold_from_then_on(self, spark, numbers):
        receipt = numbers.alter(spark=spark).add_constraint("Small", "n < 10 AND v != 'x'")
        assert receipt.version == 2
        assert numbers.head().properties == {"delta.constraints.small": "n < 10 AND v != 'x'"}
        with pytest.raises(InvalidRows):
            numbers.append(spark.sql("SELECT 10 AS n, 'c' AS v"))
        numbers.alter(spark=spark).drop_constraint("SMALL")
        numbers.append(spark.sql("SELECT 10 AS n, 'x' AS v"))
        found = [(each.operation, each.operation_parameters) for each in numbers.history(limit=3)]
        assert found[1:] == [
            (
                "DROP CONSTRAINT",
                {"name": "SMALL", "expr": "n < 10 AND v != 'x'", "existed": "true"},
            ),
            ("ADD CONSTRAINT", {"name": "Small", "expr": "n < 10 AND v != 'x'"}),
        ]
        assert len(independent(numbers)) == 3

    def test_that_rows_break_are_refused(self, spark, numbers):
        numbers.append(spark.sql("SELECT cast(null AS int) AS n, 'c' AS v"))
        with pytest.raises(InvalidCommand, match="violate the new CHECK") as refusal:
            numbers.alter(spark=spark).add_constraint("one", "n = 1")
        assert refusal.value.getCondition() == "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION"
        assert numbers.version == 2

    def test_conflict_with_rows_that_come_meanwhile(self, spark, lake, numbers):
        same, mine = lake.table(numbers.id), lake.table(numbers.id)
        overtake(mine, lambda: same.append(spark.sql("SELECT 11 AS n, 'c' AS v")))
        with pytest.raises(ConcurrentAppendException):
            mine.alter(spark=spark).add_constraint("small", "n < 10")
        with refused("DELTA_NEW_CHECK_CONSTRAINT_VIOLATION"):
            lake.table(numbers.id).alter(spark=spark).add_constraint("small", "n < 10")
        assert numbers.head().properties == {}

    def test_make_rows_conflict_that_were_not_checked(self, spark, lake, numbers):
        same, mine = lake.table(numbers.id), lake.table(numbers.id)
        overtake(mine, lambda: same.alter(spark=spark).add_constraint("small", "n < 10"))
        with pytest.raises(Exception, match="version 2"):
            mine.append(spark.sql("SELECT 11 AS n, 'c' AS v"))
        assert rows(numbers.read(spark)) == [(1, "a"), (2, "b")]

    @pytest.mark.parametrize(
        ("expression", "error_class"),
        [
            ("n + 1", "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT"),
            ("n < rand()", "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_CHECK_CONSTRAINT"),
            ("n < (SELECT 1)", "DELTA_UNSUPPORTED_EXPRESSION_CHECK_CONSTRAINT"),
            ("nothing > 1", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
            ("n <", "PARSE_SYNTAX_ERROR"),
            ("n < 5 b", "PARSE_SYNTAX_ERROR"),
        ],
    )
    def test_that_are_none_are_refused(self, spark, numbers, expression, error_class):
        with refused(error_class):
            numbers.alter(spark=spark).add_constraint("c", expression)
        assert numbers.version == 1

    def test_that_are_not_there_are_dropped_where_that_is_said(self, spark, numbers):
        with refused("DELTA_CONSTRAINT_DOES_NOT_EXIST"):
            numbers.alter(spark=spark).drop_constraint("c")
        numbers.alter(spark=spark).drop_constraint("c", if_exists=True)
        parameters = numbers.history(limit=1)[0].operation_parameters
        assert parameters == {"name": "c", "existed": "false"}


class TestProperties:
    def test_set_and_unset(self, spark, numbers):
        alter = numbers.alter(spark=spark)
        alter.set_properties({"DELTA.appendonly": "true", "owner": "ann", "comment": "numbers"})
        head = numbers.head()
        assert head.properties == {"delta.appendOnly": "true", "owner": "ann"}
        assert head.metadata.description == "numbers"
        commit = numbers.history(limit=1)[0]
        assert commit.operation == "SET TBLPROPERTIES"
        assert json.loads(commit.operation_parameters["properties"]) == {
            "delta.appendOnly": "true",
            "owner": "ann",
            "comment": "numbers",
        }
        alter.unset_properties("delta.APPENDONLY", "nothing", if_exists=True)
        commit = numbers.history(limit=1)[0]
        assert commit.operation == "UNSET TBLPROPERTIES"
        assert commit.operation_parameters == {
            "properties": '["delta.appendOnly","nothing"]',
            "ifExists": True,
        }
        assert numbers.head().properties == {"owner": "ann"}
        with refused("DELTA_UNSET_NON_EXISTENT_PROPERTY"):
            alter.unset_properties("nothing")

    def test_the_comment(self, spark, numbers):
        numbers.alter(spark=spark).set_comment("numbers")
        assert numbers.head().metadata.description == "numbers"
        numbers.alter(spark=spark).set_comment(None)
        assert numbers.head().metadata.description is None

    def test_that_map_the_columns(self, spark, numbers):
        numbers.alter(spark=spark).set_properties({"delta.columnMapping.mode": "name"})
        assert "columnMapping" in numbers.head().protocol.writer_features or (
            numbers.head().protocol.min_reader_version == 2
        )
        numbers.alter(spark=spark).rename_column("v", "w")
        numbers.append(spark.sql("SELECT 3 AS n, 'c' AS w"))
        assert rows(numbers.read(spark)) == [(1, "a"), (2, "b"), (3, "c")]
        with refused("DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"):
            numbers.alter(spark=spark).unset_properties("delta.columnMapping.mode")

    def test_that_raise_the_protocol(self, spark, numbers):
        alter = numbers.alter(spark=spark)
        alter.set_properties({"delta.feature.v2checkpoint": "supported", "owner": "ann"})
        assert "v2Checkpoint" in numbers.head().protocol.reader_features
        assert numbers.head().properties == {"owner": "ann"}
        alter.set_properties({"delta.enableDeletionVectors": "true"})
        features = numbers.head().protocol.reader_features
        assert {"v2Checkpoint", "deletionVectors"} <= features

    @pytest.mark.parametrize(
        ("properties", "error_class"),
        [
            ({"delta.nothing": "1"}, "DELTA_UNKNOWN_CONFIGURATION"),
            ({"delta.constraints.c": "n > 0"}, "DELTA_ADD_CONSTRAINTS"),
            ({"location": "/tmp/x"}, "DELTA_CANNOT_CHANGE_LOCATION"),
            ({"Provider": "parquet"}, "DELTA_CANNOT_CHANGE_PROVIDER"),
            (
                {"delta.feature.Clustering": "supported"},
                "DELTA_ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED",
            ),
            ({"delta.columnmapping.maxColumnId": "9"}, "DELTA_CANNOT_MODIFY_TABLE_PROPERTY"),
            ({"delta.feature.nothing": "supported"}, "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG"),
            (
                {"delta.columnMapping.mode": "id"},
                "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
            ),
        ],
    )
    def test_that_cannot_be_set_are_refused(self, spark, numbers, properties, error_class):
        with refused(error_class):
            numbers.alter(spark=spark).set_properties(properties)
        assert numbers.version == 1

    @pytest.mark.parametrize(
        ("properties", "words"),
        [
            ({"delta.appendOnly": "perhaps"}, "expected true or false"),
            (
                {"delta.deletedFileRetentionDuration": "interval 45 days"},
                "needs to be greater than or equal to delta.deletedFileRetentionDuration",
            ),
        ],
    )
    def test_values_that_they_cannot_have_are_refused(self, spark, numbers, properties, words):
        with pytest.raises(InvalidRequest, match=words):
            numbers.alter(spark=spark).set_properties(properties)
        assert numbers.version == 1
