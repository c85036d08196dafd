"""How files are spread over sizes, and over numbers of deleted records.

The bins of sizes are Delta's (FileSizeHistogramUtils.scala); those of deleted records are in the
protocol.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from itertools import chain

from msgspec import Struct

_KIB = 1024
_MIB = 1024 * _KIB
_GIB = 1024 * _MIB


def _steps(first: int, last: int, step: int, unit: int) -> Iterable[int]:
    return (size * unit for size in range(first, last + 1, step))


SIZE_BINS: tuple[int, ...] = tuple(
    chain(
        (0,),
        (8 * _KIB << power for power in range(10)),
        _steps(8, 40, 4, _MIB),
        _steps(48, 120, 8, _MIB),
        _steps(124, 144, 4, _MIB),
        _steps(160, 576, 16, _MIB),
        _steps(640, 1408, 64, _MIB),
        _steps(1536, 2048, 128, _MIB),
        _steps(2304, 3840, 256, _MIB),
        (4 * _GIB << power for power in range(7)),
    )
)
"""Where each bin begins, in bytes; the last one has no end."""
DELETED_BINS = (0, 1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 2**31 - 1)


class FileSizeHistogram(Struct, frozen=True, kw_only=True, rename="camel"):
    """PROTOCOL.md, "File Size Histogram Schema". Raises `ValueError` for arrays of different
    lengths and for boundaries that are none."""

    sorted_bin_boundaries: tuple[int, ...]
    file_counts: tuple[int, ...]
    total_bytes: tuple[int, ...]

    def __post_init__(self) -> None:
        boundaries = self.sorted_bin_boundaries
        if not len(boundaries) == len(self.file_counts) == len(self.total_bytes):
            raise ValueError("the arrays of a histogram of file sizes differ in their lengths")
        if boundaries[:1] != (0,) or list(boundaries) != sorted(set(boundaries)):
            raise ValueError("the boundaries of a histogram of file sizes do not grow from 0")


class DeletedRecordCountsHistogram(Struct, frozen=True, kw_only=True, rename="camel"):
    """PROTOCOL.md, "Deleted Record Counts Histogram Schema". Raises `ValueError` for another number
    of bins."""

    deleted_record_counts: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.deleted_record_counts) != len(DELETED_BINS):
            raise ValueError(
                f"a histogram of deleted records has {len(DELETED_BINS)} bins, found "
                f"{len(self.deleted_record_counts)}"
            )


def histogram_of_bins(bins: Mapping[int, tuple[int, int]]) -> FileSizeHistogram:
    """From the number of files and of bytes in each of `SIZE_BINS` that has any, by its place."""
    places = range(len(SIZE_BINS))
    return FileSizeHistogram(
        sorted_bin_boundaries=SIZE_BINS,
        file_counts=tuple(bins.get(place, (0, 0))[0] for place in places),
        total_bytes=tuple(bins.get(place, (0, 0))[1] for place in places),
    )


def histogram_of_sizes(
    sizes: Iterable[int], boundaries: tuple[int, ...] = SIZE_BINS
) -> FileSizeHistogram:
    """A size below 0, which no file has, is in no bin."""
    counts, totals = [0] * len(boundaries), [0] * len(boundaries)
    for size in sizes:
        place = bisect_right(boundaries, size) - 1
        if place >= 0:
            counts[place] += 1
            totals[place] += size
    return FileSizeHistogram(
        sorted_bin_boundaries=boundaries, file_counts=tuple(counts), total_bytes=tuple(totals)
    )


def deleted_histogram(without: int, cardinalities: Iterable[int]) -> DeletedRecordCountsHistogram:
    """Of so many files without a deletion vector, and those with vectors of these cardinalities;
    one below 0, which no vector has, is in no bin."""
    counts = [without, *[0] * (len(DELETED_BINS) - 1)]
    for cardinality in cardinalities:
        place = bisect_right(DELETED_BINS, cardinality) - 1
        if place >= 0:
            counts[place] += 1
    return DeletedRecordCountsHistogram(deleted_record_counts=tuple(counts))
