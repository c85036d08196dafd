"""Which files are written again together."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tidegate.models import DataFile
from tidegate.spark.commands.target import size_of
from tidegate.spark.expressions.pruning import statistics
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.tables.partitions import canonical_text

T = TypeVar("T")

Partition = tuple[str | None, ...]
"""The values of a file's partition columns, in the log's spelling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Files of one partition, which become others."""

    partition: Partition
    files: tuple[DataFile, ...]

    @property
    def size(self) -> int:
        """In bytes."""
        return size_of(self.files)


def worth_compacting(file: DataFile, *, min_size: int, max_deleted_ratio: float) -> bool:
    """Whether the file is small, or has lost more of its rows than that; one that does not say how
    many it had counts as such."""
    if file.size < min_size:
        return True
    vector = file.deletion_vector
    if vector is None:
        return False
    stats = statistics(file)
    if stats is None or stats.num_records is None:
        return True
    return vector.cardinality > max_deleted_ratio * stats.num_records


def bins_of(
    files: Iterable[DataFile],
    layout: TableLayout,
    *,
    zone: str,
    max_size: int | None,
    least: int,
) -> list[Bin]:
    """The files of each partition from the smallest on, in bins of at most `max_size` bytes or of
    one file; all of a partition in one without it. Bins of fewer than `least` files are left
    out. `zone` is the session's."""
    physical = layout.physical
    partitions: dict[Partition, list[DataFile]] = {}
    for file in files:
        key = tuple(
            canonical_text(physical, column, file.partition_values.get(column), zone=zone)
            for column in physical.partition_columns
        )
        partitions.setdefault(key, []).append(file)
    return [
        Bin(partition=partition, files=tuple(bin_))
        for partition, found in partitions.items()
        for bin_ in packed(sorted(found, key=_size), size=_size, limit=max_size)
        if len(bin_) >= least
    ]


def packed(items: Sequence[T], *, size: Callable[[T], int], limit: int | None) -> list[list[T]]:
    """The items in their order, in groups of no more than the limit or of one item; in one group
    without a limit."""
    if limit is None:
        return [list(items)] if items else []
    groups: list[list[T]] = []
    used = 0
    for item in items:
        if not groups or used + size(item) > limit:
            groups.append([])
            used = 0
        groups[-1].append(item)
        used += size(item)
    return groups


def _size(file: DataFile) -> int:
    return file.size
