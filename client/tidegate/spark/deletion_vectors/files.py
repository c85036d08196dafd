"""Deletion vectors where they are stored: in the log, or in files beside the data.

A file begins with a version, and then has for each vector its size, its bytes and their CRC-32
(PROTOCOL.md, "Deletion Vector File Storage Format"), all numbers big endian.
"""

import struct
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID, uuid4

from pyroaring import BitMap64

from tidegate.spark.deletion_vectors.bitmaps import (
    decode_z85,
    encode_z85,
    format_bitmap,
    parse_bitmap,
)
from tidegate.spark.errors import UnsupportedTable
from tidegate.spark.storage.locations import DataStore
from tidegate_protocol.log.actions import DeletionVector
from tidegate_protocol.log.paths import decode

_RELATIVE, _INLINE, _ABSOLUTE = "u", "i", "p"
_UUID_CHARACTERS = 20
_VERSION = 1
_INT = struct.Struct(">i")
_CRC = struct.Struct(">I")
_THREADS = 16


def read_vectors(vectors: Sequence[DeletionVector], store: DataStore) -> list[BitMap64]:
    """The positions of each of the vectors, in their order; `store` is that of the table.

    Raises `UnsupportedTable` for one that is not as the protocol has it, and what the storage
    raises.
    """
    with ThreadPoolExecutor(max_workers=_THREADS) as pool:
        return list(pool.map(lambda vector: read_vector(vector, store), vectors))


def read_vector(vector: DeletionVector, store: DataStore) -> BitMap64:
    """The positions of one vector. Raises as `read_vectors` does."""
    name = vector.unique_id
    if vector.storage_type == _INLINE:
        try:
            data = decode_z85(vector.path_or_inline_dv)[: vector.size_in_bytes]
        except ValueError as error:
            raise UnsupportedTable(f"deletion vector {name}: {error}") from None
    else:
        data = _stored(vector, store)
    return parse_bitmap(data, cardinality=vector.cardinality, name=name)


def write_vectors(
    positions: Sequence[BitMap64], store: DataStore, *, folder: str = ""
) -> list[DeletionVector]:
    """Write one file with a vector for each set of positions, none of them empty; the vectors are
    those of the log, in the order of the sets.

    `folder` is the one of the table's folders that the file lies in, the table's own by default. A
    file that no commit names is for VACUUM. Raises what the storage raises.
    """
    identifier = uuid4()
    content = bytearray([_VERSION])
    vectors = []
    for bitmap in positions:
        if not bitmap:
            raise ValueError("expected deleted rows, found none: such a file has no vector")
        data = format_bitmap(bitmap)
        vectors.append(
            DeletionVector(
                storage_type=_RELATIVE,
                path_or_inline_dv=folder + encode_z85(identifier.bytes),
                offset=len(content),
                size_in_bytes=len(data),
                cardinality=len(bitmap),
            )
        )
        content += _INT.pack(len(data)) + data + _CRC.pack(zlib.crc32(data))
    if vectors:
        store.create(path_of(vectors[0]), bytes(content))
    return vectors


def inlined(vector: DeletionVector, store: DataStore) -> DeletionVector:
    """A stored vector as one in the log itself. Raises as `read_vectors` does."""
    return DeletionVector(
        storage_type=_INLINE,
        path_or_inline_dv=encode_z85(_stored(vector, store)),
        size_in_bytes=vector.size_in_bytes,
        cardinality=vector.cardinality,
    )


def is_inline(vector: DeletionVector) -> bool:
    """Whether it is in the log itself."""
    return vector.storage_type == _INLINE


def at_path(vector: DeletionVector, path: str) -> DeletionVector:
    """A stored vector by the absolute path of its file, as an action has that."""
    return DeletionVector(
        storage_type=_ABSOLUTE,
        path_or_inline_dv=path,
        offset=vector.offset,
        size_in_bytes=vector.size_in_bytes,
        cardinality=vector.cardinality,
    )


def _stored(vector: DeletionVector, store: DataStore) -> bytes:
    if vector.storage_type not in (_RELATIVE, _ABSOLUTE) or vector.offset is None:
        raise UnsupportedTable(
            f"deletion vector {vector.unique_id}: expected a storage type among u, p and i, and "
            f"for u and p an offset; found {vector.storage_type!r} and {vector.offset}"
        )
    length = _INT.size + vector.size_in_bytes + _CRC.size
    found = store.part(path_of(vector), vector.offset, length)
    data = found[_INT.size : -_CRC.size]
    is_of_size = len(found) == length and _INT.unpack_from(found)[0] == vector.size_in_bytes
    if not is_of_size or _CRC.unpack(found[-_CRC.size :])[0] != zlib.crc32(data):
        raise UnsupportedTable(
            f"deletion vector {vector.unique_id}: expected {vector.size_in_bytes} bytes with their "
            f"size and checksum at {vector.offset} of {path_of(vector)}, found others",
            error_class="DELTA_DELETION_VECTOR_"
            + ("CHECKSUM_MISMATCH" if is_of_size else "SIZE_MISMATCH"),
        )
    return data


def path_of(vector: DeletionVector) -> str:
    """The path of a stored vector's file, not encoded: relative to the table's location, or
    absolute. Raises `UnsupportedTable` for a name that is none."""
    text = vector.path_or_inline_dv
    if vector.storage_type == _ABSOLUTE:
        return decode(text)
    folder, encoded = text[:-_UUID_CHARACTERS], text[-_UUID_CHARACTERS:]
    try:
        identifier = UUID(bytes=decode_z85(encoded))
    except ValueError as error:
        raise UnsupportedTable(f"deletion vector {vector.unique_id}: {error}") from None
    name = f"deletion_vector_{identifier}.bin"
    return f"{folder}/{name}" if folder else name
