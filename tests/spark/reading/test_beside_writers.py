"""What Spark reads of a plain table while `deltalake` writes to it, past the service."""

import pyarrow as pa
from deltalake import write_deltalake

from tests.spark.tables import rows


def theirs(table, *ids):
    write_deltalake(table.location, pa.table({"id": list(ids)}), mode="append")


def test_a_read_has_their_rows_at_once(spark, create):
    table = create("id bigint")
    table.append(spark.range(1))
    for number in (1, 2, 3):
        theirs(table, number)
        assert rows(table.read(spark)) == [(n,) for n in range(number + 1)]
    assert table.history(limit=1)[0].version == table.version == 4


def test_a_past_version_of_theirs(spark, create):
    table = create("id bigint")
    theirs(table, 1)
    theirs(table, 2)
    assert rows(table.read(spark, version=1)) == [(1,)]


def test_a_stream_has_their_rows_with_its_next_batch(create, reader):
    table = create("id bigint")
    theirs(table, 1)
    assert reader.run(table) == [[(1,)]]
    theirs(table, 2)
    theirs(table, 3)
    assert reader.run(table) == [[(2,), (3,)]]


def test_a_command_has_no_conflict_with_what_they_did_before(spark, create):
    table = create("id bigint")
    table.append(spark.range(3).coalesce(1))
    theirs(table, 3)
    assert table.update({"id": "id + 10"}, where="id >= 2", spark=spark).updated == 2
    theirs(table, 4)
    assert table.delete("id >= 4", spark=spark).deleted == 3
    theirs(table, 0)
    source = spark.range(1).alias("s")
    merge = table.merge(source, "t.id = s.id", alias="t")
    assert merge.whenMatchedDelete().execute().deleted == 2
    assert rows(table.read(spark)) == [(1,)]
