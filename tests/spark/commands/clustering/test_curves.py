"""The Hilbert curve as columns of Spark's."""

import itertools

import pytest

from tidegate.spark.optimize.curves import hilbert


def places(frame, *, bits):
    """The rows' places, each as a tuple of longs."""
    placed, names = hilbert(frame, frame.columns, bits=bits)
    return [tuple(row) for row in placed.select(*names).collect()]


@pytest.mark.parametrize(("dimensions", "bits"), [(2, 4), (3, 3), (4, 2)])
def test_goes_through_each_cell_once_and_from_each_to_one_beside_it(spark, dimensions, bits):
    cells = list(itertools.product(range(1 << bits), repeat=dimensions))
    ddl = ", ".join(f"c{i} BIGINT" for i in range(dimensions))
    found = places(spark.createDataFrame(cells, ddl).coalesce(1), bits=bits)
    by_place = dict(zip((place for (place,) in found), cells, strict=True))
    assert sorted(by_place) == list(range(len(cells)))
    steps = [
        sum(abs(a - b) for a, b in zip(by_place[i], by_place[i + 1], strict=True))
        for i in range(len(cells) - 1)
    ]
    assert set(steps) == {1}


def test_of_one_column_is_its_order(spark):
    assert places(spark.range(8).coalesce(1), bits=3) == [(i,) for i in range(8)]


def test_many_bits_take_several_longs(spark):
    """The most significant first: each is a part of the way through a smaller cube."""
    cells = [(n, 5) for n in (0, 1, 2**38, 2**39)]
    fine = places(spark.createDataFrame(cells, "a BIGINT, b BIGINT").coalesce(1), bits=40)
    coarse = [(a >> 38, b >> 38) for a, b in cells]
    firsts = places(spark.createDataFrame(coarse, "a BIGINT, b BIGINT").coalesce(1), bits=2)
    assert [(first >> 54,) for first, _ in fine] == firsts
    assert len(set(fine)) == len(cells)
