"""Tables that others made with a column of the type void."""

import json
from uuid import uuid4

import pytest
from pyspark.sql.types import NullType

from tests.spark.tables import folder_of, rows
from tidegate.spark import UnsupportedTable


@pytest.mark.parametrize("by_merge", [False, True])
def test_rows_are_written_once_it_has_a_type(spark, lake, create, by_merge):
    made = create("a int")
    log = folder_of(made).with_name(f"void{by_merge}") / "_delta_log"
    log.mkdir(parents=True)
    text = made.commit_bytes(0).decode().replace(made.id, str(uuid4()))
    void = json.dumps({"name": "n", "type": "void", "nullable": True, "metadata": {}})
    text = text.replace('\\"fields\\":[', '\\"fields\\":[' + void.replace('"', '\\"') + ",")
    (log / f"{0:020}.json").write_text(text)
    table = lake.register_table(f"main.test.void{by_merge}", log.parent.as_uri())
    assert table.read(spark).schema["n"].dataType == NullType()
    with pytest.raises(UnsupportedTable, match=r"column n of .* option mergeSchema"):
        table.append(spark.sql("SELECT 1 AS a"))
    table.delete(spark=spark)
    new = spark.sql("SELECT 0 AS a, 'x' AS n")
    if by_merge:
        merge = table.merge(new.alias("s"), "t.a = s.a", alias="t").withSchemaEvolution()
        merge.whenNotMatchedInsertAll().execute()
    else:
        table.append(new, mergeSchema=True)
    table.append(spark.sql("SELECT 1 AS a, 'y' AS n"))
    assert rows(table.read(spark)) == [("x", 0), ("y", 1)]
