"""What a table is clustered by: chosen, changed, told, and what its writers owe it."""

import json
from pathlib import Path

import pytest

from tests.spark.tables import actions, data_files, rows
from tidegate.errors import ConflictError, InvalidRequest
from tidegate.spark import InvalidCommand
from tidegate.spark.alter.alteration import Alteration
from tidegate.spark.tables import DeltaTable
from tidegate_protocol.features.table_features import implied_features

MAPPED = {"delta.columnMapping.mode": "name"}


def refused(error_class, kind=InvalidCommand):
    return pytest.raises(kind, match=error_class)


def clustering_columns(session, table):
    (row,) = DeltaTable.over(session, table).detail().collect()
    return row["clusteringColumns"]


class TestNewTables:
    def test_have_it_from_version_0(self, session, clustered):
        table = clustered("a int, s struct<`x.y`: string>", "A", "s.`x.y`")
        (domain,) = actions(table, 0, "domainMetadata")
        assert json.loads(domain["configuration"])["clusteringColumns"] == [["a"], ["s", "x.y"]]
        assert {"clustering", "domainMetadata"} <= implied_features(table.head().protocol)
        assert table.history()[-1].operation_parameters["clusterBy"] == '["a", "s.`x.y`"]'
        assert clustering_columns(session, table) == ["a", "s.`x.y`"]

    def test_with_mapped_columns_it_goes_by_physical_names(self, session, clustered):
        table = clustered("a int, b int", "b", **MAPPED)
        (domain,) = actions(table, 0, "domainMetadata")
        ((physical,),) = json.loads(domain["configuration"])["clusteringColumns"]
        assert physical == table.schema.field("b").metadata["delta.columnMapping.physicalName"]
        assert table.head().properties["delta.columnMapping.maxColumnId"] == "2"
        table.append(session.sql("SELECT 1 AS a, 2 AS b"))
        table.alter(spark=session).rename_column("b", "c")
        assert clustering_columns(session, table) == ["c"]
        table.optimize(spark=session)
        assert table.scan().files[0].tags["ZCUBE_ZORDER_BY"] == '["c"]'
        assert rows(table.read(session)) == [(1, 2)]

    def test_of_a_frame(self, session, lake, clustered):
        beside = clustered("a int").location
        frame = session.sql("SELECT 1 AS a, true AS b")

        def create(name, **options):
            place = f"{beside}_{name}"
            return lake.create_table(
                f"main.clustered.{name}", as_select=frame, location=place, **options
            )

        assert clustering_columns(session, create("taken", cluster_by="a")) == ["a"]
        with refused("DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED", InvalidRequest):
            create("refused", cluster_by="b")
        assert not Path(f"{beside}_refused".removeprefix("file://")).exists()

    @pytest.mark.parametrize(
        ("options", "error_class"),
        [
            ({"cluster_by": ["nope"]}, "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
            ({"cluster_by": "a", "partition_by": "b"}, "DELTA_CLUSTER_BY_WITH_PARTITIONED_BY"),
            (
                {"cluster_by": "a", "properties": {"delta.feature.clustering": "supported"}},
                "DELTA_CREATE_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED",
            ),
        ],
    )
    def test_are_refused_as_in_delta(self, session, lake, options, error_class):
        schema = session.sql("SELECT 1 AS a, 2 AS b").schema
        with refused(error_class, InvalidRequest):
            lake.create_table("main.clustered.none", schema=schema, **options)


class TestAlter:
    def test_chooses_changes_and_drops_it(self, session, create):
        table = create("a int, b int")
        alter = table.alter(spark=session)
        assert alter.cluster_by() is None
        assert clustering_columns(session, table) == []
        for names in (["a", "B"], ["b"], []):
            alter.cluster_by(*names)
            assert clustering_columns(session, table) == [name.lower() for name in names]
        history = [(c.operation, c.operation_parameters) for c in table.history(limit=3)]
        assert history == [
            ("CLUSTER BY", {"oldClusteringColumns": "b", "newClusteringColumns": ""}),
            ("CLUSTER BY", {"oldClusteringColumns": "a,b", "newClusteringColumns": "b"}),
            ("CLUSTER BY", {"oldClusteringColumns": "", "newClusteringColumns": "a,b"}),
        ]
        assert "clustering" in implied_features(table.head().protocol)

    def test_is_refused_as_in_delta(self, session, create):
        partitioned = create("a int, p int", "p")
        with refused("DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED"):
            partitioned.alter(spark=session).cluster_by("a")
        table = create("a int, b int", **{"delta.dataSkippingNumIndexedCols": "1"})
        with refused("DELTA_CLUSTERING_COLUMN_MISSING_STATS"):
            table.alter(spark=session).cluster_by("b")
        assert table.version == 0

    def test_clustering_columns_stay(self, session, clustered):
        table = clustered("a int, s struct<x: int, y: int>, b int", "a", "s.x", **MAPPED)
        alter = table.alter(spark=session)
        for dropped in (["a"], ["b", "s"], ["s.x"]):
            with refused("DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN"):
                alter.drop_columns(*dropped)
        with refused("DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN"):
            alter.replace_columns("s STRUCT<x: INT, y: INT>, b INT")
        alter.drop_columns("s.y", "b")
        assert [field.name for field in table.schema.fields] == ["a", "s"]

    def test_a_place_where_others_would_keep_no_statistics_of_it(self, session, clustered):
        table = clustered("a int, b int, c int", "a", **{"delta.dataSkippingNumIndexedCols": "1"})
        with refused("DELTA_CLUSTERING_COLUMN_MISSING_STATS"):
            table.alter(spark=session).change_column("a", position="AFTER b")
        table.alter(spark=session).change_column("c", position="AFTER a")


class TestReplacedTables:
    @pytest.fixture(autouse=True)
    def service(self, session, lake):
        session.conf.set("spark.tidegate.url", lake.url)

    def test_by_a_definition(self, session, clustered):
        table = clustered("a int", "a")

        def builder():
            return DeltaTable.replace(session).tableName(table.name).addColumn("b", "INT")

        builder().clusterBy("b").execute()
        assert clustering_columns(session, table) == ["b"]
        assert table.history(limit=1)[0].operation_parameters["clusterBy"] == '["b"]'
        with refused("DELTA_CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE"):
            builder().partitionedBy("b").execute()
        builder().execute()
        (gone,) = actions(table, table.version, "domainMetadata")
        assert (gone["domain"], gone["removed"]) == ("delta.clustering", True)
        assert clustering_columns(session, table) == []

    def test_one_that_was_not_clustered(self, session, create):
        table = create("a int")
        DeltaTable.replace(session).tableName(table.name).addColumn("b", "INT").property(
            "delta.columnMapping.mode", "name"
        ).clusterBy(["b"]).execute()
        assert clustering_columns(session, table) == ["b"]
        (domain,) = actions(table, 1, "domainMetadata")
        assert '[["col-' in domain["configuration"]

    def test_by_a_frame(self, session, clustered):
        table = clustered("a int", "a")
        table.replace(session.sql("SELECT 1 AS b"))
        assert clustering_columns(session, table) == []
        assert rows(table.read(session)) == [(1,)]


class TestVersions:
    @pytest.fixture
    def table(self, session, clustered, copied):
        """By a to version 1, by b to version 3, then by none; columns of mapped names."""

        def make():
            table = clustered("a int, b int", "a", **MAPPED)
            for names in (["b"], []):
                table.append(session.sql("SELECT 1 AS a, 2 AS b"))
                table.alter(spark=session).cluster_by(*names)
            assert table.version == 4
            return table

        return copied(make)

    def test_are_restored_with_it(self, session, table):
        for version, columns in ((1, ["a"]), (3, ["b"]), (4, [])):
            table.restore(version=version, spark=session)
            assert clustering_columns(session, table) == columns
            table.optimize(spark=session)
            assert len(table.scan().files) == 1

    def test_of_a_table_that_had_none(self, session, create):
        table = create("a int")
        table.alter(spark=session).cluster_by("a")
        table.restore(version=0, spark=session)
        assert clustering_columns(session, table) == []

    def test_are_cloned_with_it(self, session, lake, create, table):
        name = f"{table.name}_copy"
        copy = table.clone(name, shallow=True, version=2, spark=session).table
        assert clustering_columns(session, copy) == ["b"]
        table.clone(name, shallow=True, version=1, replace=True, spark=session)
        assert clustering_columns(session, copy) == ["a"]
        plain = create("c int", **MAPPED)
        plain.clone(name, shallow=True, replace=True, spark=session)
        assert clustering_columns(session, copy) == []


class TestStatistics:
    """Of the clustering columns, whatever the properties say since."""

    @pytest.fixture
    def table(self, session, clustered):
        table = clustered("a int, b int, c int", "c")
        table.alter(spark=session).set_properties({"delta.dataSkippingNumIndexedCols": "1"})
        return table

    def minima(self, table):
        return [sorted(json.loads(file.stats)["minValues"]) for file in table.scan().files]

    def test_by_commands(self, session, table):
        table.append(session.range(10).selectExpr("int(id) a", "0 b", "int(id) c").coalesce(1))
        assert self.minima(table) == [["a", "c"]]
        table.update({"b": "1"}, where="a = 3", spark=session)
        table.delete("a = 4", spark=session)
        assert self.minima(table) == [["a", "c"]]
        table.optimize(spark=session)
        assert self.minima(table) == [["a", "c"]]

    def test_by_the_data_source(self, session, source, table):
        source.write(session.sql("SELECT 1 AS a, 2 AS b, 3 AS c"), table)
        assert self.minima(table) == [["a", "c"]]


class TestSql:
    def test_says_all_of_it(self, session, lake, sql):
        name = "main.clustered.by_sql"
        sql(
            f"CREATE TABLE {name} (a INT, `odd name` STRING) USING delta "
            "CLUSTER BY (a) TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
        )
        table = lake.table(name)
        assert clustering_columns(session, table) == ["a"]
        sql(f"ALTER TABLE {name} CLUSTER BY (`odd name`, a)")
        assert clustering_columns(session, table) == ["`odd name`", "a"]
        table.append(session.sql("SELECT 1 AS a, 'x' AS `odd name`"))
        (row,) = sql(f"OPTIMIZE {name} FULL").collect()
        assert row["metrics"]["numFilesAdded"] == 1
        assert table.history(limit=1)[0].operation_parameters["isFull"] is True
        sql(f"ALTER TABLE {name} CLUSTER BY NONE")
        assert clustering_columns(session, table) == []
        sql(f"REPLACE TABLE {name} (c INT) CLUSTER BY (c)")
        assert clustering_columns(session, table) == ["c"]

    def test_is_refused_in_delta_s_words(self, session, create, sql):
        table = create("a int")
        with refused("PARSE_SYNTAX_ERROR"):
            sql(f"ALTER TABLE {table.name} CLUSTER BY a")
        with refused("DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"):
            sql(f"ALTER TABLE {table.name} CLUSTER BY (b)")
        assert (table.version, data_files(table)) == (0, set())


@pytest.mark.parametrize("text", [None, "a int"])
def test_a_column_is_not_dropped_that_others_cluster_by_meanwhile(
    session, clustered, text, monkeypatch
):
    table = clustered("a int, b int", "a", **MAPPED)
    commit = Alteration.commit

    def late(*args, **options):
        monkeypatch.undo()
        table.alter(spark=session).cluster_by("b")
        return commit(*args, **options)

    monkeypatch.setattr(Alteration, "commit", late)
    alter = table.alter(spark=session)
    with pytest.raises(ConflictError, match=r"delta\.clustering"):
        alter.replace_columns(text) if text else alter.drop_columns("b")
    assert clustering_columns(session, table) == ["b"]


class TestOverwriting:
    """`overwriteSchema` makes another table of it, which nobody has said to be clustered."""

    @pytest.mark.parametrize("options", [{}, {"partition_by": "b"}])
    def test_the_schema_leaves_it_clustered_by_nothing(self, session, clustered, options):
        table = clustered("a int, c int", "a")
        table.overwrite(session.sql("SELECT 1 AS b, 2 AS c"), overwriteSchema=True, **options)
        assert clustering_columns(session, table) == []
        table.optimize(spark=session)

    def test_by_a_stream_is_known_of_each_version(self, session, clustered):
        table = clustered("a int, c int", "a")
        write = table.sink(output_mode="complete", app_id="s", overwriteSchema=True)
        write(session.sql("SELECT 1 AS a, 2 AS b"), 0)
        table.alter(spark=session).cluster_by("b")
        table.restore(version=1, spark=session)
        assert clustering_columns(session, table) == []

    def test_the_rows_leaves_it_as_it_is(self, session, clustered):
        table = clustered("a int, c int", "a")
        table.overwrite(session.sql("SELECT 1 AS a, 2 AS c"), overwriteSchema=True)
        assert clustering_columns(session, table) == ["a"]


def test_without_column_mapping_it_goes_by_the_columns_names(session, clustered):
    table = clustered("a int, c int", "a", **MAPPED)
    table.append(session.sql("SELECT 1 AS a, 2 AS c"))
    table.alter(spark=session).drop_feature("columnMapping")
    assert clustering_columns(session, table) == ["a"]
    table.optimize(spark=session, full=True)
    assert rows(table.read(session)) == [(1, 2)]
