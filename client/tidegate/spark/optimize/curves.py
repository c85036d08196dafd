"""Curves through a space of several columns: a row's place on one, from the numbers of its ranges.

Rows that are near to each other on a curve are so in each column. Z-order does with the bits of the
numbers in turns, and jumps; the Hilbert curve goes from each cell to one beside it. A place is one
long or several, the most significant first.
"""

from collections.abc import Sequence
from functools import cache
from typing import Protocol

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

_LONG_BITS = 62
_PLACE = "__tidegate_place"


class Curve(Protocol):
    """Adds to a DataFrame the places of its rows, by columns with numbers of so many bits each, and
    names them."""

    def __call__(
        self, frame: DataFrame, numbers: Sequence[str], *, bits: int
    ) -> tuple[DataFrame, list[str]]: ...


def z_order(frame: DataFrame, numbers: Sequence[str], *, bits: int) -> tuple[DataFrame, list[str]]:
    """The numbers as one, whose first bits are the first of each."""
    digits = [
        F.shiftright(number, bit).bitwiseAND(F.lit(1))
        for bit in reversed(range(bits))
        for number in numbers
    ]
    places: dict[str, Column] = {}
    for start in range(0, len(digits), _LONG_BITS):
        place = F.lit(0).cast("long")
        for i, digit in enumerate(reversed(digits[start : start + _LONG_BITS])):
            place = place.bitwiseOR(F.shiftleft(digit.cast("long"), i))
        places[f"{_PLACE}{len(places)}"] = place
    return frame.withColumns(places), list(places)


def hilbert(frame: DataFrame, numbers: Sequence[str], *, bits: int) -> tuple[DataFrame, list[str]]:
    """The place on the Hilbert curve of the cell with these coordinates.

    From the first bit on, the bits of all coordinates say in which part of what is left the cell
    lies. How the curve goes through that part, and which of its parts it meets when, is looked up.
    """
    dimensions = len(numbers)
    if dimensions == 1:
        return z_order(frame, numbers, bits=bits)
    table = hilbert_table(dimensions)
    way_bits = (len(table) >> dimensions).bit_length()
    # The part, and behind it the way, so that one number is all there is to go on with.
    steps = ((row & (1 << dimensions) - 1) << way_bits | row >> dimensions for row in table)
    known = F.expr(f"array({','.join(f'{step}L' for step in steps)})")
    way_mask = F.lit((1 << way_bits) - 1)

    def step(found: Column, corner: Column) -> Column:
        way = found.bitwiseAND(way_mask).cast("int")
        parts = F.shiftleft(F.shiftright(found, way_bits), dimensions + way_bits)
        return parts.bitwiseOR(F.get(known, F.shiftleft(way, dimensions).bitwiseOR(corner)))

    corners = [_corner(numbers, bit) for bit in reversed(range(bits))]
    each = (_LONG_BITS - way_bits) // dimensions
    found = F.lit(0).cast("long")
    places: dict[str, Column] = {}
    for start in range(0, bits, each):
        part = F.array(*corners[start : start + each])
        found = F.aggregate(part, found.bitwiseAND(way_mask), step)
        places[f"{_PLACE}{len(places)}"] = F.shiftright(found, way_bits)
    return frame.withColumns(places), list(places)


def _corner(numbers: Sequence[str], bit: int) -> Column:
    """The bits in one place of all numbers, as one number."""
    corner = F.lit(0)
    for axis, number in enumerate(numbers):
        one = F.shiftright(number, bit).bitwiseAND(F.lit(1)).cast("int")
        corner = corner.bitwiseOR(F.shiftleft(one, axis))
    return corner


@cache
def hilbert_table(dimensions: int) -> tuple[int, ...]:
    """For each way in which the curve goes through a cube, and each corner of it: the way through
    the cube at that corner, and in the last bits which of them all it is.

    After C. Hamilton, "Compact Hilbert Indices" (2006). A way is where it enters, and along which
    axis it leaves.
    """
    n, corners = dimensions, 1 << dimensions
    ways = {(0, 0): 0}
    rows: list[int] = []
    order = [(0, 0)]
    for entry, axis in order:
        for corner in range(corners):
            nth = _gray_inverse(_rotated(corner ^ entry, -(axis + 1), n))
            inner_entry, inner_axis = _within(nth, n)
            way = (
                entry ^ _rotated(inner_entry, axis + 1, n),
                (axis + inner_axis + 1) % n,
            )
            if way not in ways:
                ways[way] = len(ways)
                order.append(way)
            rows.append(ways[way] << n | nth)
    return tuple(rows)


def _within(nth: int, n: int) -> tuple[int, int]:
    """Where the curve enters the nth cube of a cube, and along which axis it leaves it."""
    if nth == 0:
        return 0, 0
    even = nth - 1 & ~1
    ones = nth if nth & 1 else nth - 1
    trailing = (~ones & ones + 1).bit_length() - 1
    return even ^ even >> 1, trailing % n


def _gray_inverse(code: int) -> int:
    found = code
    while code:
        code >>= 1
        found ^= code
    return found


def _rotated(bits: int, by: int, n: int) -> int:
    """Towards the more significant bits."""
    by %= n
    return (bits << by | bits >> n - by) & (1 << n) - 1
