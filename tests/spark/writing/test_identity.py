"""Identity columns: numbers computed in Spark's plan, each given out once."""

import json

import pytest
from pyspark.sql.types import LongType, StructField, StructType

from tests.spark.tables import actions, overtake
from tidegate import MetadataChangedException
from tidegate.spark import InvalidRows, SchemaMismatch
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.values.identity import Numbering, moved_marks
from tidegate_protocol.features.computed_columns import Identity, identity
from tidegate_protocol.log.actions import Metadata

START, STEP = "delta.identity.start", "delta.identity.step"
EXPLICIT, MARK = "delta.identity.allowExplicitInsert", "delta.identity.highWaterMark"


def numbers(name, *, start=1, step=1, explicit=False):
    metadata = {START: start, STEP: step, EXPLICIT: explicit}
    return StructField(name, LongType(), True, metadata)


@pytest.fixture
def numbered(lake, create):
    """Create a table with an identity column `id` and a column `a`."""

    def create_table(**kinds):
        name = create("a int").name + "_n"
        columns = [numbers("id", **kinds), StructField("a", LongType())]
        return lake.create_table(name, schema=StructType(columns))

    return create_table


def mark_of(table):
    return identity(table.schema.field("id")).mark


def values(df):
    return sorted(row[0] for row in df.select("id").collect())


@pytest.mark.parametrize(
    ("step", "mark", "bounds", "moved"),
    [
        (3, 7, (1, 4), None),
        (3, 7, (1, 12), 10),
        (3, None, (-9, 0), None),
        (-3, -5, (-2, 1), None),
        (-3, -5, (-8, 1), -8),
    ],
)
def test_marks_go_on_from_the_start_and_never_back(step, mark, bounds, moved):
    field = numbers("id", start=1, step=step)
    if mark is not None:
        field.metadata[MARK] = mark
    text = StructType([field]).json()
    layout = TableLayout.of(
        name="t", location="file:///t", metadata=Metadata(id="t", schema_string=text)
    )
    found = moved_marks(text, layout, {"id": bounds})
    assert (found and json.loads(found)["fields"][0]["metadata"][MARK]) == moved


def test_rows_that_are_copied_take_no_numbers(spark, numbered):
    table = numbered()
    for _ in range(2):
        table.append(spark.range(1).coalesce(1).selectExpr("id AS a"))
    source = spark.sql("SELECT 0L AS a").alias("s")
    merge = table.merge(source, "t.a = s.a AND t.id = 1", alias="t")
    merge.whenMatchedUpdate(set={"a": "9L"}).whenNotMatchedInsert(values={"a": "s.a"}).execute()
    assert values(table.read(spark)) == [1, 2]
    assert mark_of(table) == 2


def test_numbers_that_were_given_move_no_mark_where_none_is_new(spark, numbered):
    table = numbered(start=10, step=5, explicit=True)
    table.append(spark.sql("SELECT 1000L AS id, 0L AS a UNION ALL SELECT 2000L, 1L"))
    source = spark.sql("SELECT 0L AS a").alias("s")
    merge = table.merge(source, "t.a = s.a", alias="t")
    merge.whenMatchedUpdate(set={"a": "9L"}).whenNotMatchedInsert(values={"a": "s.a"}).execute()
    table.overwrite(spark.sql("SELECT 5L AS a").where("a = 0"), replace_where="a = 9")
    assert values(table.read(spark)) == [2000]
    assert mark_of(table) is None
    table.append(spark.sql("SELECT 2L AS a"))
    assert values(table.read(spark)) == [10, 2000]


def test_partitions_need_nothing_of_each_other(spark, numbered):
    table = numbered(step=-2)
    table.append(spark.range(0, 10, 1, 3).selectExpr("id AS a"))
    found = values(table.read(spark))
    assert len(set(found)) == 10
    assert all((1 - number) % 2 == 0 and number <= 1 for number in found)
    assert mark_of(table) == min(found)
    table.append(spark.range(0, 10, 1, 3).selectExpr("id AS a"))
    later = set(values(table.read(spark))) - set(found)
    assert len(later) == 10
    assert max(later) < min(found)


def test_rows_that_are_shuffled_are_numbered_without_a_second_job(spark, numbered):
    table = numbered()
    shuffled = spark.range(20).selectExpr("id % 7 AS a").distinct()
    table.append(shuffled)
    assert len(set(values(table.read(spark)))) == 7


def test_the_marks_commit_is_tagged_as_deltas(spark, numbered):
    table = numbered()
    receipt = table.append(spark.range(2).selectExpr("id AS a"))
    (info,) = actions(table, receipt.version, "commitInfo")
    assert info["tags"]["delta.identity.schemaUpdate"] == "true"
    assert len(actions(table, receipt.version, "metaData")) == 1


def test_of_two_writers_the_slower_one_conflicts(spark, lake, numbered):
    table = numbered()
    rival = lake.table(table.id)
    overtake(table, lambda: rival.append(spark.range(1).coalesce(1).selectExpr("id AS a")))
    with pytest.raises(MetadataChangedException):
        table.append(spark.range(1).coalesce(1).selectExpr("id AS a"))
    assert values(rival.read(spark)) == [1]


def test_values_of_its_own_are_refused_where_the_column_is_always_generated(spark, numbered):
    table = numbered()
    with pytest.raises(SchemaMismatch, match=r"columns \['id'\] .* GENERATED ALWAYS") as refusal:
        table.append(spark.sql("SELECT 7L AS id, 1L AS a"))
    assert refusal.value.error_class == "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED"
    assert table.version == 0


def test_values_of_its_own_do_not_move_the_mark_by_default(spark, numbered):
    table = numbered(explicit=True)
    table.append(spark.sql("SELECT 7L AS ID, 1L AS a"))
    assert mark_of(table) is None
    table.append(spark.sql("SELECT 2L AS a").coalesce(1))
    assert values(table.read(spark)) == [1, 7]


def test_numbers_that_are_used_up_are_an_error(spark, numbered):
    table = numbered(start=2**63 - 2)
    table.append(spark.range(2).coalesce(1).selectExpr("id AS a"))
    with pytest.raises(InvalidRows, match="no numbers left") as refusal:
        table.append(spark.range(1).selectExpr("id AS a"))
    assert refusal.value.error_class == "ARITHMETIC_OVERFLOW"
    assert table.version == 1


def test_a_row_beyond_the_last_number_fails_the_job(spark, numbered):
    table = numbered(start=2**63 - 2)
    with pytest.raises(InvalidRows, match="no numbers left"):
        table.append(spark.range(3).coalesce(1).selectExpr("id AS a"))
    assert table.version == 0


def test_files_of_one_transaction_have_different_numbers(spark, numbered):
    table = numbered()
    with table.transaction() as txn:
        for _ in range(2):
            txn.add(txn.write_files(spark.range(2).coalesce(1).selectExpr("id AS a")))
        txn.commit("WRITE")
    assert values(table.read(spark)) == [1, 2, 3, 4]
    assert mark_of(table) == 4


def test_a_merged_schema_and_the_marks_are_one_change_of_the_metadata(spark, numbered):
    table = numbered()
    receipt = table.append(spark.sql("SELECT 1L AS a, 'x' AS b"), mergeSchema=True)
    (metadata,) = actions(table, receipt.version, "metaData")
    assert '"b"' in metadata["schemaString"]
    assert mark_of(table) == 1
    (info,) = actions(table, receipt.version, "commitInfo")
    assert "delta.identity.schemaUpdate" not in info.get("tags", {})


def test_numbers_are_dense_where_the_partitions_are_known(spark):
    df = spark.range(0, 6, 1, 3)
    numbering = Numbering.of(df)
    assert numbering.partitions == 3
    numbers_of = Identity(start=1, step=1, mark=None, explicit=False)
    found = numbering.rows.select(numbering.column("id", numbers_of)).collect()
    assert sorted(row[0] for row in found) == [1, 2, 3, 4, 5, 6]
