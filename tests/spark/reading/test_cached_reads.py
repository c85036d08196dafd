"""Reads that are cached: others of the same files, and commands, are not in their way."""

import pytest

from tests.spark.reading.change_data import FEED
from tests.spark.tables import rows

VECTORS = {"delta.enableDeletionVectors": "true"}


@pytest.fixture
def cached(spark):
    found = []

    def cache(df):
        found.append(df.cache())
        assert found[-1].count() == 3
        return found[-1]

    yield cache
    for df in found:
        df.unpersist()


def test_commands_do_their_work_beside_them(spark, create, cached):
    table = create("id bigint")
    table.append(spark.range(3).coalesce(1))
    now, past = cached(table.read(spark)), cached(table.read(spark, version=1))
    assert table.update({"id": "id + 10"}, where="id = 1", spark=spark).updated == 1
    assert table.delete("id = 2", spark=spark).deleted == 1
    merge = table.merge(past.alias("s"), "t.id = s.id", alias="t")
    assert merge.whenNotMatchedInsertAll().execute().inserted == 2
    assert rows(table.read(spark)) == [(0,), (1,), (2,), (11,)]
    assert rows(now) == rows(past) == [(0,), (1,), (2,)]


def test_a_past_of_the_same_files_with_vectors(spark, create, cached):
    table = create("id bigint", **VECTORS)
    table.append(spark.range(3).coalesce(1))
    cached(table.read(spark, version=1))
    table.delete("id = 1", spark=spark)
    assert rows(table.read(spark, version=2)) == [(0,), (2,)]


def test_the_changes_of_the_same_files(spark, create, cached):
    table = create("id bigint", **FEED)
    table.append(spark.range(3).coalesce(1))
    cached(table.read(spark, version=1))
    assert table.changes(spark, from_version=1).count() == 3
