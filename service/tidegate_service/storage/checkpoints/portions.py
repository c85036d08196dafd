"""Pieces of what is written, so that what becomes Python's objects or Arrow's at once is little:
nothing can interrupt that, and others' commits wait meanwhile."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import pyarrow as pa

T = TypeVar("T")

CELLS = 100_000
"""Rows times columns of a piece that Arrow parses, and of the batch that it becomes."""
FEW = 10
ROWS = 32
"""Rows of a piece that is put together from Python's objects."""
CELLS_OF_OBJECTS = 20_000
BYTES_OF_OBJECTS = 256 * 1024
"""Of such a piece's log lines, unless one line alone is longer."""


def width_of(data_type: pa.DataType) -> int:
    """How many columns Parquet makes of it."""
    if not data_type.num_fields:
        return 1
    return sum(width_of(data_type.field(place).type) for place in range(data_type.num_fields))


def rows_at_once(width: int, *, cells: int = CELLS) -> int:
    """How many rows of so many columns, beside a few that all tables have, are a piece."""
    return max(1, cells // (FEW + width))


def of_lines(lines: bytes, count: int, rows: int) -> Iterator[tuple[bytes, int]]:
    """So many log lines at a time, and how many they are."""
    if count <= rows:
        yield lines, count
        return
    every = lines.split(b"\n")
    for start in range(0, count, rows):
        some = every[start : start + rows]
        yield b"\n".join(some), len(some)


def of_objects(items: Iterable[T], size_of: Callable[[T], int], rows: int) -> Iterator[list[T]]:
    """Some at a time, by their number and by their bytes."""
    some: list[T] = []
    size = 0
    for item in items:
        size += size_of(item)
        if some and (len(some) == rows or size > BYTES_OF_OBJECTS):
            yield some
            some, size = [], size_of(item)
        some.append(item)
    if some:
        yield some
