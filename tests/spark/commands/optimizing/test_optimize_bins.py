"""Which files OPTIMIZE writes again together, by their sizes and partitions alone."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import IntegerType, StructField, StructType, TimestampType

from tests.spark.layouts import layout_of
from tidegate import DataFile
from tidegate.spark.optimize.bins import bins_of, packed, worth_compacting
from tidegate_protocol.log.actions import DeletionVector

PLAIN = layout_of(StructType([StructField("a", IntegerType())]))


def file(size, *, name=None, rows=None, deleted=0, **partition):
    vector = DeletionVector(
        storage_type="i", path_or_inline_dv="", size_in_bytes=1, cardinality=deleted
    )
    return DataFile(
        path=name or f"f{size}",
        partition_values=partition,
        size=size,
        modification_time=0,
        data_change=True,
        stats=None if rows is None else f'{{"numRecords":{rows}}}',
        deletion_vector=vector if deleted else None,
    )


def sizes(bins) -> list[list[int]]:
    return [[each.size for each in bin_.files] for bin_ in bins]


class TestBins:
    def test_are_filled_from_the_smallest_file_on(self):
        files = [file(size) for size in (5, 1, 4, 2, 9)]
        assert sizes(bins_of(files, PLAIN, zone="UTC", max_size=7, least=1)) == [
            [1, 2, 4],
            [5],
            [9],
        ]

    def test_of_too_few_files_are_left_out(self):
        files = [file(size) for size in (5, 1, 4, 2, 9)]
        assert sizes(bins_of(files, PLAIN, zone="UTC", max_size=7, least=2)) == [[1, 2, 4]]

    def test_may_hold_a_whole_partition(self):
        files = [file(size) for size in (5, 9)]
        assert sizes(bins_of(files, PLAIN, zone="UTC", max_size=None, least=1)) == [[5, 9]]

    def test_are_of_one_partition(self):
        schema = StructType([*PLAIN.spark_schema.fields, StructField("p", TimestampType())])
        layout = layout_of(schema, partition_by=("p",))
        spelt = ["2026-01-01 00:00:00", "2026-01-01T00:00:00.000000Z", "2026-01-02 00:00:00", None]
        files = [file(n + 1, p=value) for n, value in enumerate(spelt)]
        found = bins_of(files, layout, zone="UTC", max_size=100, least=1)
        assert sizes(found) == [[1, 2], [3], [4]]
        elsewhere = bins_of(files, layout, zone="America/Los_Angeles", max_size=100, least=1)
        assert sizes(elsewhere) == [[1], [2], [3], [4]]


@given(st.lists(st.integers(1, 20), max_size=30), st.integers(1, 40))
def test_groups_hold_all_items_in_order_within_the_limit(items, limit):
    groups = packed(items, size=lambda item: item, limit=limit)
    assert [item for group in groups for item in group] == items
    assert all(len(group) == 1 or sum(group) <= limit for group in groups)
    assert all(sum(a) + b[0] > limit for a, b in pairwise(groups))


@pytest.mark.parametrize(
    ("candidate", "expected"),
    [
        (file(9), True),
        (file(10), False),
        (file(10, rows=100, deleted=5), False),
        (file(10, rows=100, deleted=6), True),
        (file(10, deleted=1), True),
        (file(10, rows=100), False),
    ],
)
def test_files_that_are_worth_it(candidate, expected):
    assert worth_compacting(candidate, min_size=10, max_deleted_ratio=0.05) is expected
