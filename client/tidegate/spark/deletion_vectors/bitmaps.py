"""Sets of row positions in Delta's format (PROTOCOL.md, "Deletion Vector Format").

That is a magic number before the portable form of a 64-bit roaring bitmap, or for inline vectors
the same as text in Z85. Older writers have a form of their own, which the protocol's example has.
"""

import base64
import struct

from pyroaring import BitMap64

from tidegate.spark.errors import UnsupportedTable

_PORTABLE = 1681511377
_NATIVE = 1681511376
_MAGIC_BYTES = _INT_BYTES = 4
_NUMBERS = "0123456789"
_LOWER = "abcdefghijklmnopqrstuvwxyz"
_Z85 = f"{_NUMBERS}{_LOWER}{_LOWER.upper()}.-:+=^!/*?&<>()[]{{}}@%$#"
# Python's alphabet for the same code.
_B85 = f"{_NUMBERS}{_LOWER.upper()}{_LOWER}!#$%&()*+-;<=>?@^_`{{|}}~"
_TO_B85 = str.maketrans(_Z85, _B85)
_TO_Z85 = str.maketrans(_B85, _Z85)
_WORD = 4


def parse_bitmap(data: bytes, *, cardinality: int, name: str) -> BitMap64:
    """The positions that the bytes say; `name` is the vector's, for messages.

    Raises `UnsupportedTable` for bytes of no known form, and for another number of positions than
    the log has of it.
    """
    try:
        found = _parsed(data)
    except (ValueError, struct.error) as error:
        raise UnsupportedTable(f"deletion vector {name} is no roaring bitmap: {error}") from None
    if len(found) != cardinality:
        raise UnsupportedTable(
            f"deletion vector {name}: expected {cardinality} rows, found {len(found)}",
            error_class="DELTA_DELETION_VECTOR_CARDINALITY_MISMATCH",
        )
    return found


def _parsed(data: bytes) -> BitMap64:
    (magic,) = struct.unpack_from("<i", data)
    body = data[_MAGIC_BYTES:]
    if magic == _PORTABLE:
        return BitMap64.deserialize(body)
    if magic == _NATIVE:
        return _native(body, "<")
    if struct.unpack_from(">i", data)[0] == _NATIVE:
        return _native(body, ">")
    raise ValueError(f"expected the magic number {_PORTABLE}, found {magic}")


def _native(body: bytes, order: str) -> BitMap64:
    """Delta's older form: bitmaps of 32 bits, each behind its size, for 2^32 positions each."""
    (count,) = struct.unpack_from(f"{order}i", body)
    if not 0 <= count <= len(body):
        raise ValueError(f"expected a number of bitmaps, found {count}")
    portable = [struct.pack("<q", count)]
    start = _INT_BYTES
    for key in range(count):
        (size,) = struct.unpack_from(f"{order}i", body, start)
        start += _INT_BYTES
        portable += [struct.pack("<i", key), body[start : start + size]]
        start += size
    return BitMap64.deserialize(b"".join(portable))


def format_bitmap(positions: BitMap64) -> bytes:
    """The inverse of `parse_bitmap`."""
    return struct.pack("<i", _PORTABLE) + bytes(positions.serialize())


def decode_z85(text: str) -> bytes:
    """Raises `ValueError` for text that is no Z85."""
    if set(text) - set(_Z85) or len(text) % (_WORD + 1):
        raise ValueError(f"expected groups of five characters of Z85, found {text!r}")
    return base64.b85decode(text.translate(_TO_B85))


def encode_z85(data: bytes) -> str:
    """Zero bytes fill the last group of four."""
    padded = data + bytes(-len(data) % _WORD)
    return base64.b85encode(padded).decode().translate(_TO_Z85)
