"""Rows of a checkpoint in parts that are small enough to become Python's objects at once.

Arrow makes the objects of a column in one call, in which nothing else in the process goes on. Of
plain columns that is a value a row; of lists and maps it is whatever a row has, and a few hundred
bytes of a file may stand for millions of equal values.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import cast

import pyarrow as pa

from tidegate_protocol.base.text import excerpt
from tidegate_service.storage.checkpoints.errors import TooLarge
from tidegate_service.storage.checkpoints.parquet_pages import Column
from tidegate_service.storage.checkpoints.rows import InvalidRow
from tidegate_service.storage.limits import CHECKPOINT_LIMITS

BATCH_BYTES = 16 * 1024 * 1024
"""What the rows of a batch decode to at most, if they are more than one."""
MAX_ROW_BYTES = 64 * 1024 * 1024
VALUE_BYTES = 64
"""What a value takes as an object, however short it is."""


def refuse_unknown(kind: pa.DataType, path: str) -> None:
    """Raises `TooLarge` where a column, or what is in it, is made of others in a way that is not
    looked into. Which way that is, a file may say of any list by the schema that Arrow keeps in
    it. Raises as `refuse_repeated`, too."""
    if pa.types.is_struct(kind) or pa.types.is_list(kind) or pa.types.is_map(kind):
        refuse_repeated([kind.field(index).name for index in range(kind.num_fields)], path)
        for index in range(kind.num_fields):
            refuse_unknown(kind.field(index).type, path)
    elif kind.num_fields or isinstance(kind, pa.BaseExtensionType):
        raise TooLarge(
            f"{excerpt(path)} is {excerpt(str(kind))}, and how many values that has is not known"
        )


def refuse_repeated(names: Sequence[str], path: str) -> None:
    """Raises `InvalidRow` where two of the columns that lie in one have one name: readers would
    take either for the other."""
    repeated = next((name for name, count in Counter(names).items() if count > 1), None)
    if repeated is not None:
        raise InvalidRow(f"{excerpt(path)} has two columns named {excerpt(repeated)}")


class Parts:
    """Of the rows of one kind of action in a row group with these columns. The lists and maps of a
    part have at most `most_values` values."""

    def __init__(
        self,
        kind: str,
        columns: Sequence[Column],
        *,
        most_values: int = CHECKPOINT_LIMITS.part_values,
    ) -> None:
        self._kind = kind
        self._most_values = most_values
        self._longest: dict[str, int] = defaultdict(int)
        plain = 0
        for column in columns:
            if column.within.startswith(f"{kind}."):
                if column.repetition:
                    self._longest[column.within] += column.longest
                else:
                    plain += 1
        self._row_bytes = plain * VALUE_BYTES

    def of(
        self, rows: pa.StructArray, take: Callable[[int], None]
    ) -> Iterator[pa.StructArray | None]:
        """The rows that are there, in parts; None where others may go on. What the values of a
        part's lists and maps take is taken before it is shown. Raises `TooLarge`."""
        present = rows.filter(rows.is_valid()) if rows.null_count else rows
        if not len(present):
            return
        longest = [
            (index, self._longest[path])
            for index, path in enumerate(
                f"{self._kind}.{rows.type.field(index).name}"
                for index in range(rows.type.num_fields)
            )
            if path in self._longest
        ]
        yield from self._small(present, longest, take)

    def _small(
        self, rows: pa.StructArray, longest: list[tuple[int, int]], take: Callable[[int], None]
    ) -> Iterator[pa.StructArray | None]:
        size = self._row_bytes * len(rows)
        values = 0
        for index, each in longest:
            most, total = _in_lists(rows.field(index))
            values += total
            size += each * most + VALUE_BYTES * total
        if len(rows) > 1 and (size > BATCH_BYTES or values > self._most_values):
            yield None
            half = len(rows) // 2
            yield from self._small(rows.slice(0, half), longest, take)
            yield from self._small(rows.slice(half), longest, take)
            return
        if values > self._most_values:
            raise TooLarge(
                f"a row of it has {values} values in lists and maps; at most {self._most_values} "
                "are read"
            )
        if size > MAX_ROW_BYTES:
            raise TooLarge(f"a row of it may take {size} bytes; at most {MAX_ROW_BYTES} are read")
        take(VALUE_BYTES * values)
        yield rows


def _in_lists(column: pa.Array) -> tuple[int, int]:
    """How many values a leaf in the lists and maps of a column has at most, and how many there are
    in all."""
    if pa.types.is_struct(column.type):
        struct = cast(pa.StructArray, column)
        return _together([_in_lists(struct.field(i)) for i in range(column.type.num_fields)])
    if pa.types.is_map(column.type):
        entries = cast(pa.MapArray, column)
        return _together(
            [_values_in(_inner(entries, each)) for each in (entries.keys, entries.items)]
        )
    if pa.types.is_list(column.type):
        return _values_in(_inner(cast(pa.ListArray, column), cast(pa.ListArray, column).values))
    return 0, 0


def _values_in(column: pa.Array) -> tuple[int, int]:
    """The same of a column in a list or map, whose own values count, too."""
    if not pa.types.is_nested(column.type) or not len(column):
        return len(column), len(column)
    if pa.types.is_struct(column.type):
        struct = cast(pa.StructArray, column)
        found = [_values_in(struct.field(i)) for i in range(column.type.num_fields)]
        return _together([(0, len(column)), *found])
    return _together([(0, len(column)), _in_lists(column)])


def _together(found: Sequence[tuple[int, int]]) -> tuple[int, int]:
    return max((most for most, _ in found), default=0), sum(total for _, total in found)


def _inner(column: pa.ListArray | pa.MapArray, inner: pa.Array) -> pa.Array:
    """Those of the inner values that a list or map shows."""
    if not len(column):
        return inner.slice(0, 0)
    first, last = column.offsets[0].as_py(), column.offsets[-1].as_py()
    return inner.slice(first, last - first)
