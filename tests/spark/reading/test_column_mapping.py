"""Tables whose files know columns by physical names or ids: read and written, nested ones too."""

import datetime as dt
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.streams.queries import Stream
from tests.spark.tables import actions, folder_of, rows
from tidegate import DataFile
from tidegate.spark import UnsupportedTable
from tidegate_protocol.log.codec import encode, with_fields

MODES = ("name", "id")
NESTED = (
    "id bigint, s struct<a: int, b: array<struct<c: string>>>, m map<string, struct<d: double>>"
)
ROWS = (
    "SELECT id, named_struct('a', CAST(id AS int), 'b', array(named_struct('c', 'x'), null)) s, "
    "map('k', named_struct('d', 0.5D)) m, CAST(id % 2 AS int) p FROM range(4)"
)


@pytest.fixture(params=MODES)
def mode(request):
    return {"delta.columnMapping.mode": request.param}


def physical(table, *names):
    found = {field.name: field for field in table.head().schema.fields}
    return [found[name].metadata["delta.columnMapping.physicalName"] for name in names]


def leaves(schema):
    """Names and ids of all columns of a file, in order."""
    found = []
    for field in schema:
        if pa.types.is_struct(field.type):
            found += [(field.name, number(field)), *leaves(list(field.type))]
        elif pa.types.is_list(field.type):
            found += [(field.name, number(field)), *leaves(list(field.type.value_type))]
        elif pa.types.is_map(field.type):
            found += [(field.name, number(field)), *leaves(list(field.type.item_type))]
        else:
            found.append((field.name, number(field)))
    return found


def number(field):
    return int(field.metadata[b"PARQUET:field_id"])


def marks(fields):
    """The same of a table's schema as it is in the log."""
    found = []
    for field in fields:
        metadata = field["metadata"]
        found.append(
            (metadata["delta.columnMapping.physicalName"], metadata["delta.columnMapping.id"])
        )
        inner = field["type"]
        if isinstance(inner, dict):
            inner = inner.get("elementType") or inner.get("valueType") or inner
            found += marks(inner["fields"])
    return found


def write(how, table, df, source):
    if how == "table":
        table.append(df)
    else:
        source.write(df, table)


@pytest.mark.parametrize("how", ["table", "source"])
def test_rows_come_back_and_files_have_physical_names_and_ids(spark, create, source, mode, how):
    table = create(f"{NESTED}, p int", "p", **mode)
    df = spark.sql(ROWS)
    write(how, table, df, source)
    expected = sorted(df.collect())
    assert sorted(table.read(spark).collect()) == expected
    assert sorted(source.read(table).collect()) == expected
    (partition,) = physical(table, "p")
    files = actions(table, 1, "add")
    assert {file["partitionValues"][partition] for file in files} == {"0", "1"}
    assert all(f"{partition}=" in file["path"] for file in files)
    (column, struct) = physical(table, "id", "s")
    stats = json.loads(files[0]["stats"])
    assert stats["nullCount"][column] == 0
    assert set(stats["minValues"]) == {column, struct}
    schema = json.loads(table.head().metadata.schema_string)
    written = pq.read_schema(folder_of(table) / files[0]["path"])
    assert leaves(written) == marks(schema["fields"])[:-1]


def test_predicates_go_by_the_tables_names(spark, create, source, mode):
    table = create("id bigint, s struct<a: int>, p int", "p", **mode)
    df = spark.sql(
        "SELECT id, named_struct('a', CAST(id AS int)) s, CAST(id % 2 AS int) p FROM range(8)"
    )
    table.append(df.coalesce(1))
    assert len(table.scan("p = 1").files) == 1
    assert [row["id"] for row in table.read(spark, "p = 1 AND s.a > 4").collect()] == [5, 7]
    assert not table.scan("id > 100").files
    assert sorted(row["id"] for row in source.read(table, where="p = 0").collect()) == [0, 2, 4, 6]


def renamed(table, **names):
    """Change what columns are called, as ALTER TABLE does."""
    metadata = table.head().metadata
    schema = json.loads(metadata.schema_string)
    for field in schema["fields"]:
        field["name"] = names.get(field["name"], field["name"])
    columns = [names.get(column, column) for column in metadata.partition_columns]
    changes = {"schemaString": json.dumps(schema), "partitionColumns": columns}
    with table.transaction() as txn:
        txn.action(json.loads(encode(with_fields(metadata, changes))))
        txn.commit("RENAME COLUMN")


def test_columns_that_swap_their_names_keep_their_values(spark, create, source, mode):
    table = create("a int, b int", **mode)
    table.append(spark.sql("SELECT 1 a, 2 b"))
    renamed(table, a="b", b="a")
    table.append(spark.sql("SELECT 3 b, 4 a"))
    assert table.read(spark).columns == ["b", "a"]
    assert rows(table.read(spark)) == [(1, 2), (3, 4)]
    assert rows(source.read(table)) == [(1, 2), (3, 4)]
    assert rows(table.read(spark, "a = 2")) == [(1, 2)]
    assert rows(table.read(spark).where("b = 3")) == [(3, 4)]


def test_a_table_that_gets_the_mapping_later_keeps_its_files(spark, create, source):
    table = create("a int, s struct<x: int>, p int", "p")
    table.append(spark.sql("SELECT 1 a, named_struct('x', 5) s, 7 p"))
    schema = json.loads(table.head().metadata.schema_string)
    inner = schema["fields"][1]["type"]["fields"][0]
    for number, field in enumerate((*schema["fields"], inner), 1):
        field["metadata"] = {
            "delta.columnMapping.id": number,
            "delta.columnMapping.physicalName": field["name"],
        }
    with table.transaction() as txn:
        txn.update_metadata(
            schema=json.dumps(schema),
            set_properties={
                "delta.columnMapping.mode": "name",
                "delta.columnMapping.maxColumnId": "4",
            },
        )
        txn.commit("SET TBLPROPERTIES")
    renamed(table, a="b", p="q")
    table.append(spark.sql("SELECT 2 b, named_struct('x', 6) s, 8 q"))
    expected = [(1, (5,), 7), (2, (6,), 8)]
    assert sorted(map(tuple, table.read(spark).collect())) == expected
    assert sorted(map(tuple, source.read(table).collect())) == expected


def test_what_is_not_null_inside_is_no_hindrance(spark, create):
    columns = "a int NOT NULL, s struct<x: int NOT NULL>"
    table = create(columns, **{"delta.columnMapping.mode": "id"})
    table.append(spark.sql("SELECT 1 a, named_struct('x', 2) s"))
    assert [tuple(row) for row in table.read(spark).collect()] == [(1, (2,))]


def test_files_of_other_names_are_told_by_their_ids(spark, create, source):
    table = create("a int, b int, s struct<x: int>", **{"delta.columnMapping.mode": "id"})
    table.append(spark.sql("SELECT 1 a, 2 b, named_struct('x', 3) s"))

    def field(name, kind, number):
        return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})

    (a,) = physical(table, "a")
    ids = dict(marks(json.loads(table.head().metadata.schema_string)["fields"]))
    first, second, struct, inner = sorted(ids.values())
    # The physical name of `a` is here what the file calls `b`.
    schema = pa.schema(
        [
            field("other", pa.struct([field("y", pa.int32(), inner)]), struct),
            field(a, pa.int32(), second),
            field("one", pa.int32(), first),
        ]
    )
    path = folder_of(table) / "theirs.parquet"
    pq.write_table(pa.table([[{"y": 30}], [20], [10]], schema=schema), path)
    file = DataFile(
        path="theirs.parquet",
        partition_values={},
        size=path.stat().st_size,
        modification_time=0,
        data_change=True,
    )
    with table.transaction() as txn:
        txn.add([file])
        txn.commit("WRITE")
    expected = [(1, 2, (3,)), (10, 20, (30,))]
    assert sorted(map(tuple, table.read(spark).collect())) == expected
    assert sorted(map(tuple, source.read(table).collect())) == expected
    assert [row["b"] for row in table.read(spark, "a = 10").collect()] == [20]


def test_a_file_without_ids_is_refused_where_ids_tell(spark, create):
    table = create("a int", **{"delta.columnMapping.mode": "id"})
    path = folder_of(table) / "theirs.parquet"
    pq.write_table(pa.table({"a": [1]}), path)
    file = DataFile(
        path="theirs.parquet",
        partition_values={},
        size=path.stat().st_size,
        modification_time=0,
        data_change=True,
    )
    with table.transaction() as txn:
        txn.add([file])
        txn.commit("WRITE")
    with pytest.raises(UnsupportedTable, match="no field ids"):
        table.read(spark)


def test_columns_that_a_write_adds_get_ids_and_names(spark, create, source):
    table = create("a int, s struct<x: int>", **{"delta.columnMapping.mode": "id"})
    table.append(spark.sql("SELECT 1 a, named_struct('x', 2) s"))
    highest = int(table.head().properties["delta.columnMapping.maxColumnId"])
    before = marks(json.loads(table.head().metadata.schema_string)["fields"])
    table.append(spark.sql("SELECT 1 a, named_struct('x', 2, 'y', 3) s, 'z' n"), mergeSchema=True)
    after = marks(json.loads(table.head().metadata.schema_string)["fields"])
    assert set(before) < set(after)
    assert {number for _, number in set(after) - set(before)} == {highest + 1, highest + 2}
    assert table.head().properties["delta.columnMapping.maxColumnId"] == str(highest + 2)
    expected = [(1, (2, None), None), (1, (2, 3), "z")]
    assert sorted(map(tuple, table.read(spark).collect()), key=str) == sorted(expected, key=str)
    table.overwrite(spark.sql("SELECT 'text' a, 4L b"), overwriteSchema=True)
    assert rows(table.read(spark)) == [("text", 4)]
    assert rows(source.read(table)) == [("text", 4)]


def test_partitions_are_replaced_by_their_columns_own_names(spark, create):
    table = create("a int, p date", "p", **{"delta.columnMapping.mode": "name"})
    table.append(spark.sql("SELECT 1 a, DATE'2024-01-01' p UNION ALL SELECT 2, DATE'2024-01-02'"))
    one = spark.sql("SELECT 3 a, DATE'2024-01-01' p")
    table.overwrite(one, replace_where="p = DATE'2024-01-01'")
    day = dt.date(2024, 1, 1)
    assert rows(table.read(spark)) == [(2, dt.date(2024, 1, 2)), (3, day)]
    table.overwrite(spark.sql("SELECT 4 a, DATE'2024-01-01' p"), partitionOverwriteMode="dynamic")
    assert rows(table.read(spark)) == [(2, dt.date(2024, 1, 2)), (4, day)]


def test_the_source_overwrites_partitions_of_mapped_tables(spark, create, source):
    table = create("a int, p int", "p", **{"delta.columnMapping.mode": "id"})
    table.append(spark.sql("SELECT 1 a, 1 p UNION ALL SELECT 2, 2"))
    source.write(spark.sql("SELECT 3 a, 1 p"), table, mode="overwrite", where="p = 1")
    assert rows(source.read(table)) == [(2, 2), (3, 1)]


def test_a_golden_table_is_read(spark, register_golden, source):
    table = register_golden("data-reader-timestamp_ntz-name-mode")
    found = sorted(map(tuple, table.read(spark).collect()), key=str)
    assert len(found) == 9
    assert {row[0] for row in found} == set(range(9))
    assert {row[2] for row in found} == {
        None,
        dt.datetime(2013, 7, 5, 17, 1, 0, 123456),
        dt.datetime(2021, 11, 18, 2, 30, 0, 123456),
    }
    assert sorted(map(tuple, source.read(table).collect()), key=str) == found


def test_a_column_that_the_data_source_adds_is_that_of_its_files(spark, create, source):
    table = create("a int, s struct<x: int>", **{"delta.columnMapping.mode": "id"})
    frame = spark.sql("SELECT 1 a, named_struct('x', 2, 'y', 3) s, 'z' n")
    source.write(frame, table, mergeSchema="true")
    assert rows(table.read(spark).select("a", "s.x", "s.y", "n")) == [(1, 2, 3, "z")]


def test_a_column_that_a_stream_adds_is_that_of_its_files(spark, lake, create, source, tmp_path):
    table = create("a int", **{"delta.columnMapping.mode": "name"})
    stream = Stream(spark, tmp_path, "a int, n string")
    stream.feed('{"a":1,"n":"z"}')
    options = {"url": lake.url, "path": table.name, "mergeSchema": "true"}
    stream.run(lambda writer: writer.format("tidegate").options(**options))
    assert rows(table.read(spark)) == [(1, "z")]
