"""Deletion vectors put on files of a table by hand, of every kind of storage."""

from collections.abc import Iterable
from uuid import UUID

import msgspec
from pyroaring import BitMap64

from tests.spark.tables import folder_of
from tidegate import DataFile, Receipt, Table
from tidegate.spark.deletion_vectors.bitmaps import decode_z85, encode_z85, format_bitmap
from tidegate.spark.deletion_vectors.files import write_vectors
from tidegate.spark.deletion_vectors.marking import marked
from tidegate.spark.storage.arrow import ArrowStore
from tidegate.spark.storage.locations import DataStore
from tidegate_protocol.log.actions import DeletionVector

VECTORS = {"delta.enableDeletionVectors": "true"}
KINDS = ("u", "prefixed", "i")


def vector_of(
    table: Table, positions: Iterable[int], kind: str = "u", store: DataStore | None = None
) -> DeletionVector:
    """A stored vector of these positions."""
    bitmap = BitMap64(positions)
    if kind == "i":
        data = format_bitmap(bitmap)
        return DeletionVector(
            storage_type="i",
            path_or_inline_dv=encode_z85(data),
            size_in_bytes=len(data),
            cardinality=len(bitmap),
        )
    store = store or ArrowStore(table.location)
    # Behind another one, so that an offset counts.
    other = BitMap64([7, 1 << 40])
    _, vector = write_vectors([other, bitmap], store, folder="ab" if kind == "prefixed" else "")
    if kind != "p":
        return vector
    (path,) = folder_of(table).glob(f"deletion_vector_{_uuid(vector)}.bin")
    moved = path.parent.parent / f"{path.parent.name} moved.bin"
    path.rename(moved)
    return msgspec.structs.replace(
        vector, storage_type="p", path_or_inline_dv=moved.as_uri().replace("file://", "file:")
    )


def _uuid(vector: DeletionVector) -> str:
    return str(UUID(bytes=decode_z85(vector.path_or_inline_dv[-20:])))


def delete(table: Table, file: DataFile, vector: DeletionVector | None) -> Receipt:
    """Commit the file again with another vector."""

    with table.transaction() as txn:
        txn.remove([file])
        txn.add([marked(file, vector)])
        return txn.commit("DELETE")
