"""COMPUTE STATS: statistics put anew from the ends of the files."""

import json
from decimal import Decimal

import pytest
from pyspark.sql.types import StructType

from tests.spark.reading.vectors import VECTORS
from tests.spark.tables import actions, folder_of, overtake, rows
from tidegate import ConcurrentDeleteReadException
from tidegate.spark import InvalidCommand
from tidegate.spark.optimize.kept_statistics import with_kept
from tidegate_protocol.log.actions import Add
from tidegate_protocol.log.codec import with_fields
from tidegate_protocol.schema.table_schema import parse_schema

_MONTHS = [(10, 1), (11, 1), (20, 2), (21, 2)]


def without_statistics(table):
    """The table's files come again, and say nothing of their rows."""
    with table.transaction() as txn:
        txn.add(
            with_fields(file, {"stats": None, "dataChange": False}) for file in txn.filter_files()
        )
        txn.commit("COMPUTE STATS")


def statistics(table):
    return [json.loads(file.stats) for file in table.scan().files if file.stats is not None]


def test_files_without_any_have_them_again(spark, months):
    before = statistics(months)
    without_statistics(months)
    assert statistics(months) == []
    assert len(months.scan("a = 10").files) == 2
    computed = months.compute_statistics(spark=spark, user_metadata="why")
    assert (computed.files, computed.changed) == (2, 2)
    assert computed.receipt.version == 3
    assert sorted(map(str, statistics(months))) == sorted(map(str, before))
    assert len(months.scan("a = 10").files) == 1
    assert rows(months.read(spark)) == _MONTHS
    (info,) = actions(months, 3, "commitInfo")
    assert info["operation"] == "COMPUTE STATS"
    assert info["operationParameters"] == {"predicate": "[]"}
    assert (info["isBlindAppend"], info["userMetadata"]) == (False, "why")
    assert not actions(months, 3, "remove")
    assert {add["dataChange"] for add in actions(months, 3, "add")} == {False}


def test_what_has_them_already_stays_as_it_is(spark, months):
    computed = months.compute_statistics(spark=spark)
    assert (computed.receipt, computed.files, computed.changed) == (None, 2, 0)
    assert months.head().version == 1


def test_other_columns_are_asked_for(spark, create):
    table = create("a int, b int, s struct<c: int>", **{"delta.dataSkippingNumIndexedCols": "1"})
    table.append(spark.sql("SELECT 1 AS a, 2 AS b, named_struct('c', 3) AS s"))
    assert [set(each["minValues"]) for each in statistics(table)] == [{"a"}]
    table.alter(spark=spark).set_properties({"delta.dataSkippingStatsColumns": "b, s.c"})
    assert table.compute_statistics(spark=spark).changed == 1
    (found,) = statistics(table)
    assert found["maxValues"] == {"b": 2, "s": {"c": 3}}
    assert found["nullCount"] == {"b": 0, "s": {"c": 0}}


def test_bounds_of_strings_are_as_long_as_the_table_asks(session, source, create):
    table = create("s string", **{"delta.dataSkippingStringPrefixLength": "2"})
    df = session.sql("SELECT 'abcdef' AS s").coalesce(1)
    table.append(df)
    source.write(df, table)
    short = {"numRecords": 1, "nullCount": {"s": 0}, "minValues": {"s": "ab"}}
    short["maxValues"] = {"s": "ab\x7f"}
    assert statistics(table) == [short, short]
    table.alter(spark=session).set_properties({"delta.dataSkippingStringPrefixLength": "4"})
    assert table.compute_statistics(spark=session).changed == 2
    assert [each["minValues"]["s"] for each in statistics(table)] == ["abcd", "abcd"]


def test_of_some_partitions(spark, months):
    without_statistics(months)
    computed = months.compute_statistics("month = 2", spark=spark)
    assert (computed.files, computed.changed) == (1, 1)
    assert [each["minValues"]["a"] for each in statistics(months)] == [20]
    (info,) = actions(months, 3, "commitInfo")
    assert info["operationParameters"]["predicate"] == '["(\'month = 2)"]'


@pytest.mark.parametrize(
    ("where", "error_class"),
    [
        ("a = 10", "DELTA_NON_PARTITION_COLUMN_REFERENCE"),
        ("month = (SELECT 1)", "DELTA_UNSUPPORTED_SUBQUERY_IN_PARTITION_PREDICATES"),
    ],
)
def test_it_chooses_partitions_alone(spark, months, where, error_class):
    without_statistics(months)
    with pytest.raises(InvalidCommand) as refused:
        months.compute_statistics(where, spark=spark)
    assert refused.value.getCondition() == error_class
    assert months.head().version == 2


def test_bounds_of_files_that_lost_rows_are_wide(spark, create):
    table = create("a int", **VECTORS)
    table.append(spark.range(5).selectExpr("cast(id AS int) AS a").coalesce(1))
    table.delete("a = 4", spark=spark)
    without = [with_fields(f, {"stats": '{"numRecords":5}'}) for f in table.scan().files]
    with table.transaction() as txn:
        txn.add(with_fields(file, {"dataChange": False}) for file in without)
        txn.commit("COMPUTE STATS")
    assert table.compute_statistics(spark=spark).changed == 1
    (found,) = statistics(table)
    assert found == {
        "numRecords": 5,
        "minValues": {"a": 0},
        "maxValues": {"a": 4},
        "nullCount": {"a": 0},
        "tightBounds": False,
    }
    assert rows(table.read(spark)) == [(0,), (1,), (2,), (3,)]
    assert table.compute_statistics(spark=spark).changed == 0


def test_decimals_keep_their_digits(spark, create):
    table = create("d decimal(18,2)", **VECTORS)
    table.append(
        spark.sql("SELECT col1 AS d FROM VALUES (1234567890123456.78), (1.00)").coalesce(1)
    )
    table.delete("d = 1", spark=spark)
    (file,) = table.scan().files
    exact = Decimal("1234567890123456.78")
    for near in ("1234567890123456.8", "1234567890123456.7"):
        text = file.stats.replace(f'"maxValues":{{"d":{exact}}}', f'"maxValues":{{"d":{near}}}')
        assert text != file.stats
        with table.transaction() as txn:
            txn.add([with_fields(file, {"stats": text, "dataChange": False})])
            txn.commit("COMPUTE STATS")
        assert table.compute_statistics(spark=spark).changed == 1
        (found,) = table.scan().files
        assert json.loads(found.stats, parse_float=Decimal)["maxValues"] == {"d": exact}
        assert table.compute_statistics(spark=spark).changed == 0


@pytest.mark.parametrize("wider", ["double", "bigint"])
def test_columns_that_were_widened(spark, create, wider):
    table = create("a int", **{"delta.enableTypeWidening": "true"})
    table.append(spark.sql("SELECT col1 AS a FROM VALUES (1), (3), (null)").coalesce(1))
    table.alter(spark=spark).change_column("a", type=wider)
    assert table.compute_statistics(spark=spark).changed == 0
    without_statistics(table)
    table.compute_statistics(spark=spark)
    (found,) = statistics(table)
    assert found["nullCount"] == {"a": 1}
    assert (found["minValues"], found["maxValues"]) == ({"a": 1}, {"a": 3})


class TestWhatTheEndsOfFilesDoNotSay:
    """It stays as the log has it."""

    def test_of_doubles_that_arrow_wrote(self, session, source, create):
        table = create("x double, a int", **VECTORS)
        source.write(session.sql("SELECT 1.5D AS x, 1 AS a UNION ALL SELECT null, 2"), table)
        before = statistics(table)
        assert table.compute_statistics(spark=session).changed == 0
        without_statistics(table)
        table.compute_statistics(spark=session)
        assert [each["minValues"].keys() for each in statistics(table)] == [{"a"}] * len(before)
        assert {"x": 1.5, "a": 1} in [each["minValues"] for each in before]

    @pytest.mark.parametrize("wider", ["decimal(20,2)", "timestamp_ntz"])
    def test_of_columns_whose_bounds_have_another_form(self, spark, create, wider):
        narrow, value = ("int", "1") if wider[0] == "d" else ("date", "DATE'2026-01-02'")
        table = create(f"s struct<a: {narrow}>, b int", **{"delta.enableTypeWidening": "true"})
        table.append(spark.sql(f"SELECT named_struct('a', {value}) AS s, 3 AS b"))
        (before,) = statistics(table)
        table.alter(spark=spark).change_column("s.a", type=wider)
        assert table.compute_statistics(spark=spark).changed == 0
        lacking = with_fields(
            table.scan().files[0],
            {"stats": json.dumps({**before, "nullCount": {}}), "dataChange": False},
        )
        with table.transaction() as txn:
            txn.add([lacking])
            txn.commit("COMPUTE STATS")
        assert table.compute_statistics(spark=spark).changed == 1
        assert statistics(table) == [before]

    def test_of_timestamps_without_any_there(self, session, create):
        table = create("t timestamp, a int")
        session.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
        folder = folder_of(table) / "others"
        df = session.sql("SELECT TIMESTAMP'2026-01-02' AS t, 1 AS a").coalesce(1)
        df.write.parquet(folder.as_uri())
        (path,) = folder.glob("*.parquet")
        told = {"t": "2026-01-02T00:00:00.000Z", "a": 1}
        stats = {"numRecords": 1, "minValues": told, "maxValues": told}
        with table.transaction() as txn:
            add = Add(
                path=f"others/{path.name}",
                partition_values={},
                size=path.stat().st_size,
                modification_time=1,
                data_change=True,
                stats=json.dumps({**stats, "nullCount": {"t": 0, "a": 0}}),
            )
            txn.add([add])
            txn.commit("WRITE")
        assert table.compute_statistics(spark=session).changed == 0

    def test_but_bounds_of_nulls_alone(self, spark, create):
        table = create("a int, b int")
        table.append(spark.sql("SELECT cast(null AS int) AS a, 1 AS b"))
        (file,) = table.scan().files
        wrong = {"numRecords": 1, "minValues": {"a": 1, "b": 1}, "nullCount": {"a": 0, "b": 0}}
        with table.transaction() as txn:
            txn.add([with_fields(file, {"stats": json.dumps(wrong), "dataChange": False})])
            txn.commit("COMPUTE STATS")
        table.compute_statistics(spark=spark)
        assert statistics(table) == [json.loads(file.stats)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, {"minValues": {"a": 1}}),
        ("no JSON", {"minValues": {"a": 1}}),
        ('{"minValues":[1]}', {"minValues": {"a": 1}}),
        ('{"minValues":{"a":0,"b":null,"c":5}}', {"minValues": {"a": 1}}),
        ('{"minValues":{"b":2.50},"tightBounds":true}', {"minValues": {"a": 1, "b": 2.5}}),
        (
            '{"minValues":{"b":2.50},"tightBounds":false}',
            {"minValues": {"a": 1, "b": 2.5}, "tightBounds": False},
        ),
    ],
)
def test_what_is_kept_of_statistics_of_others(spark, before, after):
    leaves = parse_schema(StructType.fromDDL("a int, b double").json()).leaves()
    found = json.loads(with_kept('{"numRecords":2,"minValues":{"a":1}}', before, leaves))
    assert {"maxValues": {}, "nullCount": {}} | after == {
        name: value for name, value in found.items() if name != "numRecords"
    }


def test_mapped_columns_are_found_by_their_physical_names(spark, create):
    table = create("a int, b int", **{"delta.columnMapping.mode": "name"})
    table.append(spark.sql("SELECT 1 AS a, 2 AS b"))
    table.alter(spark=spark).rename_column("a", "first")
    before = statistics(table)
    without_statistics(table)
    assert table.compute_statistics(spark=spark).changed == 1
    assert statistics(table) == before


def test_clustering_columns_are_among_them(spark, lake, months):
    table = lake.create_table(
        f"{months.name}_clustered",
        schema=StructType.fromDDL("a int, b int"),
        cluster_by="b",
    )
    table.append(spark.sql("SELECT 1 AS a, 2 AS b"))
    table.alter(spark=spark).set_properties({"delta.dataSkippingStatsColumns": "a"})
    without_statistics(table)
    assert table.compute_statistics(spark=spark).changed == 1
    assert [each["minValues"] for each in statistics(table)] == [{"a": 1, "b": 2}]


class TestConflicts:
    def test_with_who_removes_a_file(self, spark, lake, months):
        without_statistics(months)
        mine, same = lake.table(months.name), lake.table(months.name)
        overtake(mine, lambda: same.delete("month = 1", spark=spark))
        with pytest.raises(ConcurrentDeleteReadException):
            mine.compute_statistics(spark=spark)
        assert statistics(months) == []

    def test_is_done_anew_where_that_is_asked_for(self, spark, lake, months):
        without_statistics(months)
        mine, same = lake.table(months.name), lake.table(months.name)
        rivals = iter([1])

        def rival():
            for _ in rivals:
                same.delete("month = 1", spark=spark)

        overtake(mine, rival)
        computed = mine.compute_statistics(spark=spark, retries=1)
        assert (computed.files, computed.changed) == (1, 1)

    def test_not_with_who_only_adds(self, spark, lake, months):
        without_statistics(months)
        mine, same = lake.table(months.name), lake.table(months.name)
        overtake(mine, lambda: same.append(spark.sql("SELECT 12 AS a, 1 AS month")))
        assert mine.compute_statistics(spark=spark).changed == 2
        assert len(statistics(months)) == 3
