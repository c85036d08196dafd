"""Parameters of statements in Postgres's binary format, whole columns of them packed in one go.

psycopg packs a list value by value in Python, which for the rows of a group of commits costs more
than everything else about them. Layout: `array_send` in Postgres' arrayfuncs.c.
"""

import struct
from collections.abc import Sequence
from itertools import chain
from uuid import UUID

import msgspec
import psycopg

_ENCODER = msgspec.json.Encoder()

_HEAD = struct.Struct(">iiIii")
_LENGTH = struct.Struct(">i")
_NULL = _LENGTH.pack(-1)

# Object ids of types and of their arrays, in pg_type.
_BYTEA, _BYTEAS = 17, 1001
_INT8, _INT8S = 20, 1016
_TEXT, _TEXTS = 25, 1009
_JSON, _JSONS = 114, 199
_UUID, _UUIDS = 2950, 2951


class Parameter:
    """A value as it is sent, with the object id of its type."""

    __slots__ = ("data", "oid")

    def __init__(self, oid: int, data: bytes | None) -> None:
        self.oid = oid
        self.data = data


def uuid(value: UUID) -> Parameter:
    return Parameter(_UUID, value.bytes)


def text(value: str) -> Parameter:
    """Without U+0000, which Postgres refuses in text."""
    return Parameter(_TEXT, value.encode())


def int8(value: int) -> Parameter:
    return Parameter(_INT8, value.to_bytes(8, "big", signed=True))


def bytea(value: bytes | None) -> Parameter:
    return Parameter(_BYTEA, value)


def int8s(values: Sequence[int | None]) -> Parameter:
    """An array of integers of 64 bits. Raises `psycopg.DataError` for others."""
    try:
        if None in values:
            packed = [None if v is None else v.to_bytes(8, "big", signed=True) for v in values]
            return Parameter(_INT8S, _packed(_INT8, packed))
        count = len(values)
        pairs = chain.from_iterable((8, value) for value in values)
        return Parameter(_INT8S, _head(_INT8, count) + struct.pack(">" + "iq" * count, *pairs))
    except (OverflowError, struct.error):
        raise psycopg.DataError("an integer is out of range for 64 bits") from None


def texts(values: Sequence[str | None]) -> Parameter:
    """Raises `psycopg.DataError` for U+0000, which Postgres refuses in text, as psycopg does."""
    encoded = [None if value is None else value.encode() for value in values]
    packed = _packed(_TEXT, encoded)
    # Lengths and the head are full of NULs, so only the texts are looked through.
    if b"\0" in b"".join([text for text in encoded if text is not None]):
        raise psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
    return Parameter(_TEXTS, packed)


def jsons(values: Sequence[bytes]) -> Parameter:
    """JSON texts in UTF-8."""
    return Parameter(_JSONS, _packed(_JSON, values))


def records(rows: Sequence[msgspec.Struct]) -> Parameter:
    """Rows as one JSON array, for `json_to_recordset`. Raises `psycopg.DataError` for what JSON
    or UTF-8 cannot say; U+0000 and integers out of range are refused by the server, likewise."""
    try:
        return Parameter(_JSON, _ENCODER.encode(rows))
    except (OverflowError, UnicodeEncodeError) as error:
        raise psycopg.DataError(f"a value cannot be sent as JSON: {error}") from None


def byteas(values: Sequence[bytes | None]) -> Parameter:
    return Parameter(_BYTEAS, _packed(_BYTEA, values))


def uuids(values: Sequence[UUID]) -> Parameter:
    return Parameter(_UUIDS, _packed(_UUID, [value.bytes for value in values]))


def _packed(element: int, values: Sequence[bytes | None]) -> bytes:
    parts = [_head(element, len(values), nulls=None in values)]
    for value in values:
        if value is None:
            parts.append(_NULL)
        else:
            parts += (_LENGTH.pack(len(value)), value)
    return b"".join(parts)


def _head(element: int, count: int, *, nulls: bool = False) -> bytes:
    if not count:
        # Of no dimension.
        return struct.pack(">iiI", 0, 0, element)
    return _HEAD.pack(1, nulls, element, count, 1)
