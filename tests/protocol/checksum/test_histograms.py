"""Histograms have Delta's bins, and put each file where Delta does."""

import pytest

from tidegate_protocol.checksum.histograms import (
    DELETED_BINS,
    SIZE_BINS,
    DeletedRecordCountsHistogram,
    FileSizeHistogram,
    deleted_histogram,
    histogram_of_bins,
    histogram_of_sizes,
)

KIB, MIB, GIB = 2**10, 2**20, 2**30


def test_the_bins_are_deltas():
    assert len(SIZE_BINS) == 95
    assert list(SIZE_BINS) == sorted(set(SIZE_BINS))
    assert SIZE_BINS[:11] == (0, *(8 * KIB * 2**power for power in range(10)))
    assert SIZE_BINS[11:13] == (8 * MIB, 12 * MIB)
    for edge in (40, 48, 120, 124, 144, 160, 576, 640, 1408, 1536, 2048, 2304, 3840):
        assert edge * MIB in SIZE_BINS
    assert SIZE_BINS[-7:] == tuple(4 * GIB * 2**power for power in range(7))


@pytest.mark.parametrize("size", [0, 1, 8 * KIB - 1, 8 * KIB, 123 * MIB, 2**62])
def test_a_bin_holds_its_beginning_and_not_its_end(size):
    found = histogram_of_sizes([size])
    (place,) = [place for place, count in enumerate(found.file_counts) if count]
    assert SIZE_BINS[place] <= size
    assert place + 1 == len(SIZE_BINS) or size < SIZE_BINS[place + 1]
    assert found.total_bytes[place] == size
    assert sum(found.total_bytes) == size


def test_sizes_below_zero_are_in_no_bin():
    assert sum(histogram_of_sizes([-1, 5]).file_counts) == 1


def test_bins_and_sizes_make_the_same():
    assert histogram_of_bins({0: (2, 30), 3: (1, 40_000)}) == histogram_of_sizes([10, 20, 40_000])
    assert histogram_of_bins({-1: (1, -5)}) == histogram_of_sizes([])


@pytest.mark.parametrize(
    ("boundaries", "counts"),
    [((0, 5), (1,)), ((), ()), ((1, 5), (0, 0)), ((0, 5, 5), (0, 0, 0)), ((0, 5, 4), (0, 0, 0))],
)
def test_what_is_no_histogram_is_refused(boundaries, counts):
    with pytest.raises(ValueError, match="histogram of file sizes"):
        FileSizeHistogram(sorted_bin_boundaries=boundaries, file_counts=counts, total_bytes=counts)


def test_deleted_records():
    assert deleted_histogram(3, [0, 9, 10, 2**31 - 2, 2**31 - 1, 2**62, -1]) == (
        DeletedRecordCountsHistogram(deleted_record_counts=(4, 1, 1, 0, 0, 0, 0, 0, 1, 2))
    )
    assert len(DELETED_BINS) == 10
    with pytest.raises(ValueError, match="10 bins, found 1"):
        DeletedRecordCountsHistogram(deleted_record_counts=(1,))
