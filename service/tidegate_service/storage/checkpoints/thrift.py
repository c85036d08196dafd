"""Thrift's compact protocol, in which Parquet says what a file and its pages are, read by hand.

What Arrow makes of it is bounded by nothing but its length.
"""

from collections.abc import Generator
from typing import Any

import pyarrow as pa

LIST, _SET, STRUCT = 9, 10, 12
_MAX_VALUES = 256
"""In a page's header, of which real ones have some twenty."""
_PASSED_AT_ONCE = 4096


class Thrift:
    """Read from the begin of these bytes on. Raises `IndexError` at their end, and
    `pa.ArrowInvalid` where they are something else."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._left = _MAX_VALUES
        self._passed = 0
        self.at = 0

    def read_struct(self, depth: int = 0) -> dict[int, Any]:
        """A page's header by the numbers of its fields: numbers and structs, all else is None."""
        if depth > 8:
            raise pa.ArrowInvalid("a page's header is nested too deep")
        fields: dict[int, Any] = {}
        number = 0
        while True:
            number, kind = self.field(number)
            if not kind:
                return fields
            fields[number] = self._value(kind, depth)

    def _value(self, kind: int, depth: int) -> "int | dict[int, Any] | None":
        self._left -= 1
        if self._left < 0:
            raise pa.ArrowInvalid(f"a page's header has more than {_MAX_VALUES} values")
        if kind in (1, 2):
            return kind == 1
        if kind == 3:
            return self.byte()
        if kind in (4, 5, 6):
            return self.number()
        if kind in (7, 8):
            self._pass(8 if kind == 7 else self.varint())
            return None
        if kind in (LIST, _SET):
            of, count = self.head_of_list()
            for _ in range(count):
                self._value(3 if of in (1, 2) else of, depth + 1)
            return None
        if kind == STRUCT:
            return self.read_struct(depth + 1)
        raise pa.ArrowInvalid("a page's header is none")

    def byte(self) -> int:
        found = self._raw[self.at]
        self.at += 1
        return found

    def head_of_list(self) -> tuple[int, int]:
        """What its elements are, and how many."""
        head = self.byte()
        return head & 15, self.varint() if head >> 4 == 15 else head >> 4

    def passed(self, kind: int) -> Generator[None]:
        """Go behind a value of any depth. Yields now and then, for others to go on."""
        inside: list[tuple[int, int]] = []
        while True:
            self._passed += 1
            if self._passed % _PASSED_AT_ONCE == 0:
                yield
            if kind in (LIST, _SET):
                inside.append(self.head_of_list())
            elif kind == STRUCT:
                inside.append((STRUCT, -1))
            elif kind not in (1, 2):
                self._pass_plain(kind)
            while inside:
                of, left = inside.pop()
                if left < 0:
                    _, kind = self.field(0)
                    if kind:
                        inside.append((of, left))
                        break
                elif left:
                    inside.append((of, left - 1))
                    kind = 3 if of in (1, 2) else of
                    break
            else:
                return

    def field(self, number: int) -> tuple[int, int]:
        """The number of the field behind the one of this number, and what it is; 0 at the end of
        a struct."""
        head = self.byte()
        if not head:
            return number, 0
        number = number + (head >> 4) if head >> 4 else self.number()
        # Arrow takes the last sixteen bits of it.
        if not 0 <= number < 1 << 15:
            raise pa.ArrowInvalid("a field has a number that is none")
        return number, head & 15

    def _pass_plain(self, kind: int) -> None:
        if kind == 3:
            self.byte()
        elif kind in (4, 5, 6):
            self.varint()
        elif kind in (7, 8):
            self._pass(8 if kind == 7 else self.varint())
        else:
            raise pa.ArrowInvalid("it has something of a kind that is none")

    def _pass(self, count: int) -> None:
        self.at += count
        if self.at > len(self._raw):
            raise IndexError

    def varint(self) -> int:
        found, shift = 0, 0
        while True:
            byte = self.byte()
            found |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return found
            if shift > 63:
                raise pa.ArrowInvalid("it has a number that is none")

    def number(self) -> int:
        found = self.varint()
        return (found >> 1) ^ -(found & 1)
