"""`DeltaTable`: the methods of Delta's class, and what they do here."""

import inspect

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from tests.spark.tables import rows
from tidegate.lake import TOKEN_VARIABLE, URL_VARIABLE
from tidegate.spark import InvalidCommand, UnsupportedSession
from tidegate.spark.tables import DeltaMergeBuilder, DeltaOptimizeBuilder, DeltaTable

_METHODS = {
    "toDF": (),
    "alias": ("aliasName",),
    "generate": ("mode",),
    "delete": ("condition",),
    "update": ("condition", "set"),
    "merge": ("source", "condition"),
    "optimize": (),
    "vacuum": ("retentionHours",),
    "history": ("limit",),
    "detail": (),
    "create": ("sparkSession",),
    "createIfNotExists": ("sparkSession",),
    "replace": ("sparkSession",),
    "createOrReplace": ("sparkSession",),
    "upgradeTableProtocol": ("readerVersion", "writerVersion"),
    "addFeatureSupport": ("featureName",),
    "dropFeatureSupport": ("featureName", "truncateHistory"),
    "restoreToVersion": ("version",),
    "restoreToTimestamp": ("timestamp",),
    "clone": ("target", "isShallow", "replace", "properties"),
    "cloneAtVersion": ("version", "target", "isShallow", "replace", "properties"),
    "cloneAtTimestamp": ("timestamp", "target", "isShallow", "replace", "properties"),
    "forPath": ("sparkSession", "path", "hadoopConf"),
    "forName": ("sparkSession", "tableOrViewName"),
    "isDeltaTable": ("sparkSession", "identifier"),
    "convertToDelta": ("sparkSession", "identifier", "partitionSchema"),
}
"""Of Delta's Python API: names, and parameters in their order."""
_CLAUSES = {
    "whenMatchedUpdate": ("condition", "set"),
    "whenMatchedUpdateAll": ("condition",),
    "whenMatchedDelete": ("condition",),
    "whenNotMatchedInsert": ("condition", "values"),
    "whenNotMatchedInsertAll": ("condition",),
    "whenNotMatchedBySourceUpdate": ("condition", "set"),
    "whenNotMatchedBySourceDelete": ("condition",),
    "withSchemaEvolution": (),
    "execute": (),
}


_OPTIMIZE = {
    "where": ("partitionFilter",),
    "executeCompaction": (),
    "executeZOrderBy": ("cols",),
}


@pytest.fixture
def named(session, lake, months):
    """The session knows the service; the table's name."""
    session.conf.set("spark.tidegate.url", lake.url)
    return months.name


@pytest.mark.parametrize(
    ("kind", "methods"),
    [
        (DeltaTable, _METHODS),
        (DeltaMergeBuilder, _CLAUSES),
        (DeltaOptimizeBuilder, _OPTIMIZE),
    ],
)
def test_methods_have_the_parameters_that_they_have_in_delta(kind, methods):
    for name, parameters in methods.items():
        found = inspect.signature(getattr(kind, name)).parameters.values()
        # What Delta's have not is by name only.
        positional = (each.name for each in found if each.kind is not each.KEYWORD_ONLY)
        assert tuple(each for each in positional if each != "self") == parameters, name


class TestFinding:
    def test_by_name_and_by_place(self, session, months, named):
        path = months.location.removeprefix("file://")
        for found in (
            DeltaTable.forName(session, named.upper()),
            DeltaTable.forName(session, f"delta.`{path}`"),
            DeltaTable.forPath(session, path),
            DeltaTable.forPath(session, months.location + "/"),
        ):
            assert found.detail().collect()[0]["name"] == named
        assert rows(found.toDF()) == [(10, 1), (11, 1), (20, 2), (21, 2)]
        assert DeltaTable.isDeltaTable(session, path)

    def test_by_the_environment(self, session, lake, months, monkeypatch):
        monkeypatch.setenv(URL_VARIABLE, lake.url)
        monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
        assert DeltaTable.forName(session, months.name).history().count() == 2

    def test_none_says_how_to_register_one(self, session, named, tmp_path):
        assert not DeltaTable.isDeltaTable(session, str(tmp_path))
        with pytest.raises(AnalysisException, match="register_table") as missing:
            DeltaTable.forPath(session, str(tmp_path))
        assert missing.value.getCondition() == "DELTA_MISSING_DELTA_TABLE"
        with pytest.raises(InvalidCommand, match=r"main\.test\.nothing"):
            DeltaTable.forName(session, "main.test.nothing")

    def test_without_a_service(self, session, monkeypatch):
        monkeypatch.delenv(URL_VARIABLE, raising=False)
        with pytest.raises(UnsupportedSession, match=URL_VARIABLE):
            DeltaTable.forName(session, "main.test.t")

    def test_with_settings_of_hadoop(self, session, named):
        with pytest.raises(UnsupportedSession, match="hadoopConf"):
            DeltaTable.forPath(session, "/t", {"fs.s3a.access.key": "k"})


class TestCommands:
    def test_a_day_of_them(self, session, named):
        table = DeltaTable.forName(session, named)
        source = session.sql("SELECT * FROM VALUES (11, 1), (7, 7) AS s(a, month)")
        merged = table.alias("t").merge(source.alias("s"), "t.a = s.a")
        counts = merged.whenMatchedDelete().whenNotMatchedInsertAll().execute()
        assert counts.collect()[0].asDict() == {
            "num_affected_rows": 2,
            "num_updated_rows": 0,
            "num_deleted_rows": 1,
            "num_inserted_rows": 1,
        }
        assert rows(table.toDF()) == [(7, 7), (10, 1), (20, 2), (21, 2)]
        found = table.history(2).select("operation", "operationMetrics").collect()
        assert [row["operation"] for row in found] == ["MERGE", "WRITE"]
        assert found[0]["operationMetrics"]["numTargetRowsInserted"] == "1"
        detail = table.detail().collect()[0]
        assert (detail["name"], detail["partitionColumns"]) == (named, ["month"])
        assert table.vacuum().count() == 0

    def test_expressions_call_the_table_by_its_name_or_an_alias(self, session, named):
        table = DeltaTable.forName(session, named)
        table.delete(f"{named.rpartition('.')[2]}.a = 10")
        table.alias("u").delete("u.a = 11")
        table.alias("u").update(set={"a": "u.a + 1"})
        assert rows(table.alias("u").toDF().select("u.a")) == [(21,), (22,)]

    def test_columns_of_its_dataframes_are_the_tables(self, session, named):
        table = DeltaTable.forName(session, named)
        found, source = table.toDF(), session.sql("SELECT 10 AS a, 5 AS month")
        merged = table.merge(source, table.toDF()["a"] == source["a"])
        merged.whenMatchedUpdate(found["month"] == 1, {"month": found["month"] + 1}).execute()
        table.update(found["a"] == 11, {"a": found["a"] + F.lit(100)})
        renamed = table.alias("t")
        renamed.delete(renamed.toDF()["a"] == 20)
        assert rows(table.toDF()) == [(10, 2), (21, 2), (111, 1)]
        other = session.range(1).toDF("a")
        with pytest.raises(InvalidCommand, match="MISSING_ATTRIBUTES"):
            table.delete(other["a"] == 10)

    def test_columns_of_a_source_that_was_made_of_them_are_the_sources(self, session, named):
        table = DeltaTable.forName(session, named)
        found = table.toDF()
        source = found.where("a = 10").withColumn("month", F.lit(9))
        merged = table.merge(source, table.toDF()["a"] == source["a"])
        merged = merged.whenMatchedUpdate(set={"month": source["month"]})
        merged.whenNotMatchedInsert(values={"a": found["a"], "month": F.lit(7)}).execute()
        # A source that is such a DataFrame, too.
        source = table.toDF()
        merged = table.merge(source, table.toDF()["a"] == source["a"] + 1)
        merged.whenMatchedUpdate(set={"month": source["month"] * 10}).execute()
        assert rows(table.toDF()) == [(10, 9), (11, 90), (20, 2), (21, 20)]

    def test_columns_of_which_nobody_can_tell_whose_they_are(self, session, named):
        table = DeltaTable.forName(session, named)
        found = table.toDF()
        alias = named.rpartition(".")[2]
        with pytest.raises(InvalidCommand, match="AMBIGUOUS_REFERENCE"):
            table.merge(session.range(1).alias(alias), found["a"] == F.col("id"))
        source = found.where("a = 10").alias("s")
        for is_said in ("true", "false"):
            session.conf.set("spark.sql.analyzer.failAmbiguousSelfJoin", is_said)
            with pytest.raises(InvalidCommand, match="AMBIGUOUS_REFERENCE"):
                table.alias("t").merge(source, F.col("t.a") == found["a"])

    def test_manifests(self, session, named, months):
        table = DeltaTable.forName(session, named)
        table.generate("SYMLINK_FORMAT_MANIFEST")
        folder = months.location.removeprefix("file://")
        manifest = session.read.text(f"{folder}/_symlink_format_manifest/month=1/manifest")
        assert manifest.count() == 1
        with pytest.raises(InvalidCommand, match="DELTA_MODE_NOT_SUPPORTED"):
            table.generate("other")


class TestTypes:
    @pytest.mark.parametrize(
        ("call", "error", "words"),
        [
            (lambda t, s: t.delete(1), TypeError, "'condition' must be a Spark SQL Column"),
            (lambda t, s: t.update("a = 1"), ValueError, "'set' cannot be None"),
            (lambda t, s: t.update(set="a = 1"), TypeError, "'set' must be a dict"),
            (lambda t, s: t.update(set={1: "1"}), TypeError, "Keys of dict in 'set'"),
            (lambda t, s: t.update(set={"a": 1}), TypeError, "Values of dict in 'set'"),
            (lambda t, s: t.merge(None, "true"), ValueError, "'source' in merge cannot be None"),
            (lambda t, s: t.merge("s", "true"), TypeError, "'source' in merge must be DataFrame"),
            (lambda t, s: t.merge(s, None), ValueError, "'condition' in merge cannot be None"),
            (
                lambda t, s: t.merge(s, "true").whenMatchedUpdate(),
                ValueError,
                "'set' in whenMatchedUpdate cannot be None",
            ),
            (
                lambda t, s: t.merge(s, "true").whenNotMatchedInsert(values=[]),
                TypeError,
                "'values' in whenNotMatchedInsert must be a dict",
            ),
        ],
    )
    def test_are_checked_as_in_delta(self, spark, months, call, error, words):
        with pytest.raises(error, match=words):
            call(DeltaTable.over(spark, months), spark.range(1))
