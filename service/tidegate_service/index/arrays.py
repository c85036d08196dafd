"""Columns of values as Postgres arrays in its binary format, packed in one go.

psycopg packs a list value by value in Python, which for the rows of a group of commits costs more
than everything else about them. Layout: `array_send` in Postgres' arrayfuncs.c.
"""

import struct
from collections.abc import Sequence
from itertools import chain
from typing import ClassVar
from uuid import UUID

import psycopg
from psycopg import pq
from psycopg.adapt import Buffer, Dumper

_HEAD = struct.Struct(">iiIii")
_LENGTH = struct.Struct(">i")
_NULL = _LENGTH.pack(-1)


class PackedArray:
    """One array parameter. `element` is the type's object id in pg_type."""

    element: ClassVar[int]
    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data


class Int8Array(PackedArray):
    element = 20


class BoolArray(PackedArray):
    element = 16


class TextArray(PackedArray):
    element = 25


class JsonArray(PackedArray):
    element = 114


class ByteaArray(PackedArray):
    element = 17


class UuidArray(PackedArray):
    element = 2950


_ARRAY_OIDS: dict[type[PackedArray], int] = {
    Int8Array: 1016,
    BoolArray: 1000,
    TextArray: 1009,
    JsonArray: 199,
    ByteaArray: 1001,
    UuidArray: 2951,
}


def int8s(values: Sequence[int | None]) -> Int8Array:
    """Integers of 64 bits. Raises `OverflowError` for others."""
    try:
        if None in values:
            return Int8Array(
                _packed(
                    Int8Array,
                    [
                        None if value is None else value.to_bytes(8, "big", signed=True)
                        for value in values
                    ],
                )
            )
        count = len(values)
        pairs = chain.from_iterable((8, value) for value in values)
        return Int8Array(_head(Int8Array, count) + struct.pack(">" + "iq" * count, *pairs))
    except struct.error as error:
        raise OverflowError(str(error)) from None


def bools(values: Sequence[bool]) -> BoolArray:
    count = len(values)
    pairs = chain.from_iterable((1, value) for value in values)
    return BoolArray(_head(BoolArray, count) + struct.pack(">" + "i?" * count, *pairs))


def texts(values: Sequence[str | None]) -> TextArray:
    """Raises `psycopg.DataError` for U+0000, which Postgres refuses in text, as psycopg does."""
    return TextArray(_packed(TextArray, _encoded(values)))


def jsons(values: Sequence[bytes]) -> JsonArray:
    """JSON texts in UTF-8."""
    return JsonArray(_packed(JsonArray, values))


def byteas(values: Sequence[bytes | None]) -> ByteaArray:
    return ByteaArray(_packed(ByteaArray, values))


def uuids(values: Sequence[UUID]) -> UuidArray:
    return UuidArray(_packed(UuidArray, [value.bytes for value in values]))


def _encoded(values: Sequence[str | None]) -> list[bytes | None]:
    encoded = [None if value is None else value.encode() for value in values]
    if any(value is not None and b"\0" in value for value in encoded):
        raise psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
    return encoded


def _packed(array: type[PackedArray], values: Sequence[bytes | None]) -> bytes:
    parts = [_head(array, len(values), nulls=None in values)]
    for value in values:
        if value is None:
            parts.append(_NULL)
        else:
            parts.append(_LENGTH.pack(len(value)))
            parts.append(value)
    return b"".join(parts)


def _head(array: type[PackedArray], count: int, *, nulls: bool = False) -> bytes:
    if not count:
        # Of no dimension.
        return struct.pack(">iiI", 0, 0, array.element)
    return _HEAD.pack(1, nulls, array.element, count, 1)


def _register(array: type[PackedArray], array_oid: int) -> None:
    class _Dumper(Dumper):
        format = pq.Format.BINARY
        oid = array_oid

        def dump(self, obj: PackedArray) -> Buffer | None:
            return obj.data

    psycopg.adapters.register_dumper(array, _Dumper)


for _array, _oid in _ARRAY_OIDS.items():
    _register(_array, _oid)
