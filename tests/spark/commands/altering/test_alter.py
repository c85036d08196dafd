"""ALTER TABLE: columns."""

import json

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from tests.spark.tables import independent, overtake, rows
from tidegate import ConcurrentAppendException, InvalidProposal, MetadataChangedException
from tidegate.spark import InvalidCommand

_MAPPED = {"delta.columnMapping.mode": "name"}


@pytest.fixture
def alter(spark):
    """`alter()` of a table, with the session."""
    return lambda table, **options: table.alter(spark=spark, **options)


def refused(error_class: str):
    return pytest.raises(InvalidCommand, match=rf"\[{error_class}")


def operation(table) -> tuple[str, dict]:
    """The last one, with the JSON in its parameters read."""
    commit = table.history(limit=1)[0]
    return commit.operation, {
        name: json.loads(text) if name in ("column", "columns", "properties") else text
        for name, text in commit.operation_parameters.items()
    }


def names(table) -> list[str]:
    return [field.name for field in table.schema.fields]


class TestAddColumns:
    def test_at_their_places_and_null_in_the_rows_that_there_are(self, spark, create, alter):
        table = create("a int, s struct<x: int>")
        table.append(spark.sql("SELECT 1 AS a, named_struct('x', 2) AS s"))
        alter(table).add_columns("b BIGINT COMMENT 'second' AFTER a, s.y STRING FIRST")
        assert names(table) == ["a", "b", "s"]
        assert rows(table.read(spark)) == [(1, None, (None, 2))]
        assert independent(table) == [{"a": 1, "b": None, "s": {"y": None, "x": 2}}]
        name, parameters = operation(table)
        assert name == "ADD COLUMNS"
        assert parameters["columns"] == [
            {
                "column": {
                    "name": "b",
                    "type": "long",
                    "nullable": True,
                    "metadata": {"comment": "second"},
                },
                "position": "AFTER a",
            },
            {
                "column": {"name": "s.y", "type": "string", "nullable": True, "metadata": {}},
                "position": "FIRST",
            },
        ]

    def test_of_mapped_tables_have_ids_above_all(self, spark, create, alter):
        table = create("a int, b int", **_MAPPED)
        table.append(spark.sql("SELECT 1 AS a, 2 AS b"))
        alter(table).drop_columns("b")
        alter(table).add_columns("b int")
        assert rows(table.read(spark)) == [(1, None)]
        assert table.head().properties["delta.columnMapping.maxColumnId"] == "3"
        table.append(spark.sql("SELECT 3 AS a, 4 AS b"))
        assert rows(table.read(spark)) == [(1, None), (3, 4)]

    @pytest.mark.parametrize(
        ("columns", "error_class"),
        [
            ("A INT", "FIELD_ALREADY_EXISTS"),
            ("b INT, B INT", "FIELD_ALREADY_EXISTS"),
            ("c INT AFTER nothing", "FIELD_NOT_FOUND"),
            ("a.x INT", "INVALID_FIELD_NAME"),
            ("nothing.x INT", "UNRESOLVED_COLUMN"),
            ("c INT NOT NULL", "DELTA_OPERATION_NOT_ALLOWED"),
            ("c STRUCT<x: INT NOT NULL>", "DELTA_OPERATION_NOT_ALLOWED"),
            ("`c d` INT", "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"),
            ("c INT DEFAULT 1", "WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED"),
            ("c VOID", "DELTA_UNSUPPORTED_DATA_TYPES"),
            ("c", "PARSE_SYNTAX_ERROR"),
            ("c INT) COMMENT 'x", "PARSE_SYNTAX_ERROR"),
        ],
    )
    def test_that_cannot_be_there_are_refused(self, create, alter, columns, error_class):
        table = create("a int")
        with refused(error_class):
            alter(table).add_columns(columns)
        assert table.version == 0

    def test_conflict_with_other_changes_of_the_table_alone(self, spark, lake, create, alter):
        table = create("a int")
        mine, same = lake.table(table.id), lake.table(table.id)
        overtake(mine, lambda: same.append(spark.sql("SELECT 1 AS a")))
        assert alter(mine).add_columns("b int").rebased_over == 1
        overtaken = lake.table(table.id)
        rivals = iter(["c"])

        def rival():
            for name in rivals:
                alter(same).add_columns(f"{name} int")

        overtake(overtaken, rival)
        with pytest.raises(MetadataChangedException):
            alter(overtaken).add_columns("d int")
        rivals = iter(["e"])
        alter(overtaken, retries=1, user_metadata="again").add_columns("d int")
        assert names(table) == ["a", "b", "c", "e", "d"]
        assert table.history(limit=1)[0].user_metadata == "again"


class TestChangeColumn:
    def test_its_comment_place_and_nullability(self, create, alter):
        table = create("a int not null, b string")
        alter(table).change_column("a", comment="first", nullable=True, position="AFTER b")
        assert names(table) == ["b", "a"]
        found = table.schema.field("a")
        assert (found.nullable, found.metadata) == (True, {"comment": "first"})
        name, parameters = operation(table)
        assert (name, parameters["position"]) == ("CHANGE COLUMN", "AFTER b")
        assert parameters["column"]["metadata"] == {"comment": "first"}

    def test_to_a_wider_type(self, spark, create, alter):
        table = create("a int, l array<int>", **{"delta.enableTypeWidening": "true"})
        table.append(spark.sql("SELECT 1 AS a, array(1) AS l"))
        alter(table).change_column("a", type="BIGINT")
        alter(table).change_column("l.element", type="BIGINT")
        table.append(spark.sql("SELECT 5000000000 AS a, array(5000000000) AS l"))
        assert rows(table.read(spark)) == [(1, [1]), (5000000000, [5000000000])]
        told = table.schema.field("l").metadata["delta.typeChanges"]
        assert told == [{"fromType": "integer", "toType": "long", "fieldPath": "element"}]

    def test_to_not_null_where_statistics_prove_it(self, spark, create, alter):
        table = create("a int, b int")
        table.append(spark.sql("SELECT 1 AS a, cast(null AS int) AS b"))
        alter(table).change_column("a", nullable=False)
        assert not table.schema.field("a").nullable
        with pytest.raises(InvalidProposal):
            alter(table).change_column("b", nullable=False)

    def test_its_default(self, spark, create, alter):
        table = create("a int, b int", **{"delta.feature.allowColumnDefaults": "supported"})
        alter(table).set_default("b", "40 + 2")
        table.append(spark.sql("SELECT 1 AS a"))
        alter(table).drop_default("b")
        table.append(spark.sql("SELECT 2 AS a"))
        assert rows(table.read(spark)) == [(1, 42), (2, None)]
        for sql, error_class in [
            ("a + 1", "UNRESOLVED"),
            ("1 FIRST", "UNRESOLVED"),
            ("array(1)", "DATA_TYPE"),
        ]:
            with refused(f"INVALID_DEFAULT_VALUE.{error_class}"):
                alter(table).set_default("b", sql)
        with refused("WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED"):
            alter(create("a int")).set_default("a", "1")

    @pytest.mark.parametrize(
        ("name", "change", "error_class"),
        [
            ("nothing", {"comment": "x"}, "UNRESOLVED_COLUMN"),
            ("a", {"type": "BIGINT"}, "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"),
            ("a", {"type": "TINYINT"}, "NOT_SUPPORTED_CHANGE_COLUMN"),
            ("a", {"type": "NOTHING"}, "UNSUPPORTED_DATATYPE"),
            ("s", {"type": "STRUCT<x: BIGINT>"}, "CANNOT_UPDATE_FIELD.STRUCT_TYPE"),
            ("l", {"type": "ARRAY<BIGINT>"}, "CANNOT_UPDATE_FIELD.ARRAY_TYPE"),
            ("l.element", {"comment": "x"}, "DELTA_UNSUPPORTED_COMMENT_MAP_ARRAY"),
            ("l.element", {"nullable": False}, "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"),
            ("a", {"position": "AFTER nothing"}, "FIELD_NOT_FOUND"),
            ("a", {"position": "FIRST COMMENT 'x'"}, "PARSE_SYNTAX_ERROR"),
            ("a", {"position": "AFTER l, d INT"}, "PARSE_SYNTAX_ERROR"),
            ("a", {"position": ""}, "PARSE_SYNTAX_ERROR"),
            ("s.y", {"comment": "x"}, "FIELD_NOT_FOUND"),
        ],
    )
    def test_refusals(self, create, alter, name, change, error_class):
        table = create("a int, s struct<x: int>, l array<int>")
        with refused(error_class):
            alter(table).change_column(name, **change)
        assert table.version == 0


class TestRenameAndDrop:
    def test_keep_the_values_of_what_stays(self, spark, create, alter):
        table = create("p string, s struct<x: int, y: int>", "p", **_MAPPED)
        table.append(spark.sql("SELECT 'k' AS p, named_struct('x', 1, 'y', 2) AS s"))
        alter(table).rename_column("p", "q")
        alter(table).rename_column("s.x", "z")
        alter(table).drop_columns("s.y")
        assert table.partition_columns == ("q",)
        assert names(table) == ["q", "s"]
        assert rows(table.read(spark, where="q = 'k'")) == [("k", (1,))]
        assert operation(table) == ("DROP COLUMNS", {"columns": ["s.y"]})
        renamed = table.history(limit=2)[1]
        assert (renamed.operation, renamed.operation_parameters) == (
            "RENAME COLUMN",
            {"oldColumnPath": "s.x", "newColumnPath": "s.z"},
        )

    def test_move_the_columns_that_have_statistics(self, create, alter):
        listed = {"delta.dataSkippingStatsColumns": "a,`b`,c"}
        table = create("a int, b int, c int", **_MAPPED, **listed)
        alter(table).rename_column("b", "odd name")
        alter(table).drop_columns("c")
        assert table.head().properties["delta.dataSkippingStatsColumns"] == "a,`odd name`"

    def test_are_refused_where_files_go_by_names(self, create, alter):
        table = create("a int, b int")
        with refused("DELTA_UNSUPPORTED_RENAME_COLUMN"):
            alter(table).rename_column("a", "c")
        with refused("DELTA_UNSUPPORTED_DROP_COLUMN"):
            alter(table).drop_columns("a")

    def test_are_refused_where_something_needs_the_column(self, spark, lake, alter):
        generated = {"delta.generationExpression": "CAST(length(s) AS BIGINT)"}
        columns = [
            StructField("s", StringType()),
            StructField("n", LongType()),
            StructField("g", LongType(), True, generated),
        ]
        table = lake.create_table(
            "main.test.dependents", schema=StructType(columns), properties=_MAPPED
        )
        alter(table).add_constraint("positive", "n > 0")
        for change in (
            lambda: alter(table).rename_column("n", "m"),
            lambda: alter(table).drop_columns("n"),
        ):
            with refused("DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE"):
                change()
        with refused("DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE"):
            alter(table).rename_column("s", "t")
        table.append(spark.sql("SELECT 'xy' AS s, 1L AS n"))
        alter(table).rename_column("g", "h")
        assert rows(table.read(spark)) == [("xy", 1, 2)]
        alter(table).drop_columns("h")
        alter(table).rename_column("s", "t")
        assert names(table) == ["t", "n"]

    def test_are_refused_for_what_has_to_stay(self, create, alter):
        table = create("p int, s struct<x: int>", "p", **_MAPPED)
        with refused("DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN"):
            alter(table).drop_columns("p")
        with refused("DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA"):
            alter(table).drop_columns("s.x")
        with refused("FIELD_ALREADY_EXISTS"):
            alter(table).rename_column("p", "S")


class TestReplaceColumns:
    def test_by_the_same_ones_otherwise(self, spark, create, alter):
        table = create("a int not null, b string")
        table.append(spark.sql("SELECT 1 AS a, 'x' AS b"))
        alter(table).replace_columns("b STRING COMMENT 'text', a INT, c DATE")
        assert names(table) == ["b", "a", "c"]
        assert rows(table.read(spark)) == [("x", 1, None)]
        assert table.schema.field("b").metadata == {"comment": "text"}
        assert table.schema.field("a").nullable
        name, parameters = operation(table)
        assert name == "REPLACE COLUMNS"
        assert [column["name"] for column in parameters["columns"]] == ["b", "a", "c"]

    def test_by_fewer_where_they_are_mapped(self, spark, create, alter):
        table = create("a int, b string", **_MAPPED)
        table.append(spark.sql("SELECT 1 AS a, 'x' AS b"))
        with refused("DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP"):
            alter(table).replace_columns("a INT, c STRING")
        alter(table).replace_columns("a INT")
        assert rows(table.read(spark)) == [(1,)]

    @pytest.mark.parametrize(
        "columns",
        [
            "a INT",
            "a BIGINT, b STRING",
            "a INT, b STRING, s STRUCT<x: INT NOT NULL>",
            "a INT, b STRING, s STRUCT<x: INT, y: INT NOT NULL>",
            "a INT, b STRING, s INT",
        ],
    )
    def test_refusals(self, create, alter, columns):
        table = create("a int, b string, s struct<x: int>")
        with refused("DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP"):
            alter(table).replace_columns(columns)
        with refused("DELTA_DUPLICATE_COLUMNS_FOUND"):
            alter(table).replace_columns("a INT, A INT, b STRING, s STRUCT<x: INT>")
        assert table.version == 0


class TestSyncIdentity:
    def test_goes_on_after_the_rows_that_there_are(self, spark, lake, alter):
        marks = {
            "delta.identity.start": 1,
            "delta.identity.step": 1,
            "delta.identity.allowExplicitInsert": True,
        }
        columns = [StructField("id", LongType(), True, marks), StructField("v", StringType())]
        table = lake.create_table("main.test.synced", schema=StructType(columns))
        table.append(spark.sql("SELECT 41L AS id, 'a' AS v"))
        alter(table).sync_identity("id")
        assert operation(table)[0] == "CHANGE COLUMN"
        table.append(spark.sql("SELECT 'b' AS v"))
        assert rows(table.read(spark)) == [(41, "a"), (42, "b")]
        mine, same = lake.table(table.id), lake.table(table.id)
        overtake(mine, lambda: same.append(spark.sql("SELECT 99L AS id, 'c' AS v")))
        with pytest.raises(ConcurrentAppendException):
            alter(mine).sync_identity("id")
        with refused("DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN"):
            alter(table).sync_identity("v")
        with refused("DELTA_IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED"):
            alter(table).replace_columns("id BIGINT, v STRING")
        for change in (
            lambda: alter(table).change_column("id", nullable=False),
            lambda: alter(table).set_default("id", "1"),
            lambda: alter(table).drop_default("id"),
        ):
            with refused("DELTA_IDENTITY_COLUMNS_ALTER_COLUMN_NOT_SUPPORTED"):
                change()
