"""CONVERT TO DELTA: a folder of Parquet files becomes a table."""

import itertools
import json
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import StructType

from tests.spark.tables import actions, data_files, folder_of, independent, rows
from tidegate import InvalidRequest, TableNotFound
from tidegate.spark import InvalidCommand
from tidegate.spark.convert.columns import merged_columns, with_partition_columns
from tidegate.spark.convert.convert import parts_of, place_of
from tidegate.spark.convert.partitions import partition_names
from tidegate.spark.data_files.foreign_footers import statistics_by_name
from tidegate.spark.tables import DeltaTable
from tidegate.spark.tables.layout import TableLayout
from tidegate_protocol.log.actions import Metadata

_numbers = itertools.count(1)


@pytest.fixture
def ddl(spark):
    """Spark reads it."""
    return StructType.fromDDL


@pytest.fixture
def name():
    return f"main.converted.t{next(_numbers)}"


@pytest.fixture
def folder(create):
    """A folder that the service may have a table in."""
    made = folder_of(create("a int"))
    folder = made.with_name(f"{made.name} [of] 100%")
    folder.mkdir()
    return folder


def write(folder, path, **columns):
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), file)


class TestFolders:
    def test_innermost_columns_count(self):
        assert partition_names("a=1/b=x%2Fy/part.parquet") == [("a", "1"), ("b", "x/y")]
        assert partition_names("a=1/x/b=2/y/part.parquet") == [("b", "2")]
        assert partition_names("part=0.parquet") == []
        assert partition_names("=1/x=/part") == [("x", "")]

    def test_what_they_are_given_by(self):
        assert parts_of("parquet.`/a/b.c d`") == ("parquet", "/a/b.c d")
        assert parts_of("`/a/b`") == parts_of("/a/b") == ("/a/b",)
        assert place_of(("PARQUET", "/a/b/")) == "file:///a/b"
        for parts, error_class in (
            (("/a",), "DELTA_MISSING_PROVIDER_FOR_CONVERT"),
            (("a", "b", "c"), "DELTA_MISSING_PROVIDER_FOR_CONVERT"),
            (("iceberg", "/a"), "DELTA_CONVERT_NON_PARQUET_TABLE"),
        ):
            with pytest.raises(InvalidCommand, match="only supports parquet tables") as refused:
                place_of(parts)
            assert refused.value.getCondition() == error_class


class TestColumns:
    def test_of_many_files(self, ddl):
        found = merged_columns(
            [
                ("1", ddl("a TINYINT NOT NULL, s STRUCT<x: INT>, l ARRAY<SMALLINT>")),
                ("2", ddl("A INT, s STRUCT<y: DATE, x: TINYINT>, m MAP<STRING, INT>")),
                ("3", ddl("l ARRAY<INT>, m MAP<STRING, SMALLINT>")),
            ]
        )
        assert found == ddl("a INT, s STRUCT<x: INT, y: DATE>, l ARRAY<INT>, m MAP<STRING, INT>")
        with pytest.raises(InvalidCommand, match="column x is int in other files, and bigint"):
            merged_columns([("1", ddl("s STRUCT<x: INT>")), ("2", ddl("s STRUCT<x: BIGINT>"))])

    def test_of_folders_stay_where_the_data_has_them(self, ddl):
        data, partitions = ddl("P STRING, a INT"), ddl("q DATE, p INT")
        assert with_partition_columns(data, partitions) == ddl("p INT, a INT, q DATE")


class TestTable:
    def test_is_one_like_others(  # noqa: PLR0917
        self, session, lake, folder, name, sql, source
    ):
        session.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
        session.conf.set("spark.databricks.delta.properties.defaults.appendOnly", "false")
        write(folder, "at=2026-01-01 12%3A00%3A00/p=a b/x", id=pa.array([1, 2], pa.int16()))
        write(
            folder,
            "at=__HIVE_DEFAULT_PARTITION__/p=%C3%A4/y",
            id=pa.array([3], pa.int32()),
            v=["w"],
        )
        write(folder, "at=2026-01-01 12%3A00%3A00/p=a b/_hidden/x", id=["no"])
        (folder / "_SUCCESS").touch()
        sql(
            f"CONVERT TO DELTA parquet.`{folder}` PARTITIONED BY (at TIMESTAMP, p STRING) "
            f"AS {name}",
            user_metadata="why",
        )
        table = lake.table(name)
        assert folder_of(table) == folder
        session.conf.set("spark.sql.session.timeZone", "UTC")
        noon = datetime(2026, 1, 1, 20)
        found = [(1, None, noon, "a b"), (2, None, noon, "a b"), (3, "w", None, "ä")]
        assert rows(table.read(session)) == rows(source.read(table)) == found
        assert sorted(row["id"] for row in independent(table)) == [1, 2, 3]
        (info,) = actions(table, 0, "commitInfo")
        assert (info["operation"], info["userMetadata"]) == ("CONVERT", "why")
        assert info["operationMetrics"] == {"numConvertedFiles": "2"}
        assert info["operationParameters"] == {
            "numFiles": "2",
            "partitionedBy": '["at","p"]',
            "collectStats": "true",
            "sourceFormat": "parquet",
        }
        assert table.head().properties == {"delta.appendOnly": "false"}
        table.delete("id = 1", spark=session)
        table.append(session.sql("SELECT 4 AS id, 'n' AS v, TIMESTAMP'2026-02-02' AS at, 'q' p"))
        assert [row[0] for row in rows(table.read(session))] == [2, 3, 4]
        # Again, it is that table already.
        sql(f"CONVERT TO DELTA parquet.`{folder}` AS {name}")
        assert table.version == 2

    def test_statistics_are_those_that_delta_would_have(self, spark, lake, folder, name, sql):
        write(
            folder,
            "a.parquet",
            i=pa.array([2, None, 1], pa.int32()),
            d=pa.array([Decimal("1.50")] * 3, pa.decimal128(5, 2)),
            day=[date(2026, 1, 2)] * 3,
            s=["b", "a", "c"],
            us=pa.array([5, 6, 7], pa.timestamp("us", "UTC")),
            f=[1.0, float("nan"), 2.0],
            u=pa.array([1, 2, 2**31 + 1], pa.uint32()),
            nested=[{"x": 1}] * 3,
        )
        file = pa.table({"ms": pa.array([5, 6], pa.timestamp("ms", "UTC"))})
        pq.write_table(file, folder / "b.parquet", coerce_timestamps="ms")
        sql(f"CONVERT TO DELTA parquet.`{folder}` AS {name}")
        first, second = (json.loads(add["stats"]) for add in actions(lake.table(name), 0, "add"))
        bounds = {"i": 1, "d": 1.5, "day": "2026-01-02", "s": "a", "nested": {"x": 1}}
        assert first["minValues"] == {**bounds, "us": "1970-01-01T00:00:00.000Z"}
        assert first["nullCount"] == {
            "i": 1, "d": 0, "day": 0, "s": 0, "us": 0, "f": 0, "u": 0, "nested": {"x": 0},
        }  # fmt: skip
        assert second["numRecords"] == 2
        assert not second.get("minValues")
        assert second["nullCount"] == {"ms": 0}
        assert lake.table(name).read(spark).count() == 5

    def test_a_name_with_a_dot_is_no_field_of_another_column(self, folder, ddl):
        write(folder, "a.parquet", **{"a.b": [7, 8]}, i=[1, 2])
        metadata = Metadata(id="x", schema_string=ddl("a struct<b: bigint>, i bigint").json())
        layout = TableLayout.of(name="t", location=folder.as_uri(), metadata=metadata)
        footer = pq.read_metadata(folder / "a.parquet")
        assert json.loads(statistics_by_name(footer, layout))["minValues"] == {"i": 1}

    def test_without_statistics(self, spark, lake, folder, name, sql):
        write(folder, "a.parquet", i=[1, 2])
        sql(f"CONVERT TO DELTA parquet.`{folder}` NO STATISTICS AS {name};")
        table = lake.table(name)
        (add,) = actions(table, 0, "add")
        assert "stats" not in add
        assert rows(table.read(spark, "i > 1")) == [(2,)]

    def test_by_deltas_api(self, session, lake, folder, name, ddl):
        session.conf.set("spark.tidegate.url", lake.url)
        session.conf.set("spark.databricks.delta.commitInfo.userMetadata", "hourly")
        write(folder, "p=1/a.parquet", i=[1])
        for schema in ("p INT", ddl("p INT")):
            found = DeltaTable.convertToDelta(session, f"parquet.`{folder}`", schema, name=name)
            assert rows(found.toDF()) == [(1, 1)]
        (conversion,) = lake.table(name).history()
        assert conversion.user_metadata == "hourly"
        with pytest.raises(InvalidCommand, match=r'name="catalog.schema.table"'):
            DeltaTable.convertToDelta(session, f"parquet.`{folder}`", "p INT")


class TestCloneOfAFolder:
    def test_deep(self, spark, lake, folder, name, sql):
        write(folder, "day=2026-01-02/a", i=[1])
        write(folder, "day=2026-01-03/a", i=[2])
        place = f"{folder}_deep"
        sql(f"CREATE TABLE {name} DEEP CLONE parquet.`{folder}` LOCATION '{place}'")
        table = lake.table(name)
        assert len(data_files(table)) == 0
        assert len(list(folder_of(table).glob("tidegate_txn=*/day=*/*"))) == 2
        assert rows(table.read(spark)) == [(1, date(2026, 1, 2)), (2, date(2026, 1, 3))]
        (info,) = actions(table, 0, "commitInfo")
        assert info["operationParameters"]["sourceVersion"] == "-1"


class TestRefused:
    @pytest.mark.parametrize(
        ("path", "words"),
        [
            ("metadata/v1.metadata.json", "to convert a iceberg source"),
            ("_spark_metadata/0", "was written by a streaming query"),
            ("_delta_log/00000000000000000000.json", "is a Delta table already"),
            ("sub/broken.parquet", "Could not read footer for file"),
        ],
    )
    def test_other_folders(self, lake, folder, sql, path, words):
        write(folder, "a.parquet", i=[1])
        (folder / path).parent.mkdir()
        (folder / path).write_text("This is no file of rows.")
        with pytest.raises(InvalidCommand, match=words):
            sql(f"CONVERT TO DELTA parquet.`{folder}` AS main.test.nothing")
        with pytest.raises(TableNotFound):
            lake.table("main.test.nothing")

    def test_other_places_and_names_that_are_taken(self, create, folder, tmp_path, name, sql):
        write(tmp_path, "a.parquet", i=[1])
        with pytest.raises(InvalidRequest, match=r"outside the warehouse .* allowed_locations"):
            sql(f"CONVERT TO DELTA parquet.`{tmp_path}` AS {name}")
        assert not (tmp_path / "_delta_log").exists()
        taken = create("a int").name
        with pytest.raises(InvalidCommand, match=f"Table {taken} already exists"):
            sql(f"CONVERT TO DELTA parquet.`{folder}` AS {taken}")

    def test_mapped_columns(self, session, folder, name, sql):
        setting = "spark.databricks.delta.properties.defaults.columnMapping.mode"
        session.conf.set(setting, "name")
        with pytest.raises(InvalidCommand, match="cannot be set to `name`"):
            sql(f"CONVERT TO DELTA parquet.`{folder}` AS {name}")

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("CONVERT parquet.`/a` AS a.b.c", "expected TO DELTA"),
            ("CONVERT TO DELTA parquet.`/a`", "expected AS, found the end"),
            ("CONVERT TO DELTA parquet.`/a` PARTITIONED BY () AS a.b.c", "an expression"),
            ("CONVERT TO DELTA main.air.flights AS a.b.c", "only supports parquet tables"),
            ("CONVERT TO DELTA parquet.`/a` AS b", "the name of the table as catalog.schema.table"),
            ("CREATE TABLE a.b.c SHALLOW CLONE parquet.`/a` VERSION AS OF 1", "no version of"),
        ],
    )
    def test_other_statements(self, sql, text, words):
        with pytest.raises(InvalidCommand, match=words):
            sql(text)
