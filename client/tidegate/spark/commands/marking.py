"""Rows that a command takes out of files that stay: the positions of the rows become deletion
vectors (PROTOCOL.md, "Deletion Vectors").

The executors make sets of positions, as bits in chunks; the driver joins the chunks of each file
with the vector that the file has already, and writes one file with all new vectors.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from pyroaring import BitMap64
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from tidegate.models import DataFile
from tidegate.spark.commands.outcome import Rewrite
from tidegate.spark.commands.target import Target
from tidegate.spark.deletion_vectors.files import read_vectors
from tidegate.spark.deletion_vectors.marking import marked
from tidegate.spark.storage.opening import store_at
from tidegate.spark.tables.places import FILE, POSITION

CHUNK = "__tidegate_chunk"
BITS = "__tidegate_bits"
_CHUNK_BITS = 15
"""As many positions as an aggregate of Spark's has bits: 4 KiB."""

Positions = Mapping[int, BitMap64]
"""Positions of rows, by the place of their file among the given ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """Files that lose rows. Those of `gone` lose all that they have left; the others are live
    again as `after`, with the vectors that they get."""

    gone: tuple[DataFile, ...] = ()
    before: tuple[DataFile, ...] = ()
    after: tuple[DataFile, ...] = ()

    @property
    def removed(self) -> list[DataFile]:
        """The files as they were."""
        return [*self.gone, *self.before]

    def metrics(self) -> dict[str, int]:
        """Counts of vectors, by Delta's names without what a command puts before them. One that
        takes the place of another is added, removed and updated."""
        updated = sum(file.deletion_vector is not None for file in self.before)
        of_gone = sum(file.deletion_vector is not None for file in self.gone)
        return {
            "DeletionVectorsAdded": len(self.after),
            "DeletionVectorsRemoved": updated + of_gone,
            "DeletionVectorsUpdated": updated,
        }


def chunk_of(position: Column) -> Column:
    """The chunk that a position is in."""
    return F.shiftright(position, _CHUNK_BITS)


def bits_of(position: Column) -> Column:
    """An aggregate of the positions of one chunk; nulls are left out."""
    return F.bitmap_construct_agg(position.bitwiseAND(F.lit((1 << _CHUNK_BITS) - 1)))


def positions_of(rows: DataFrame) -> dict[int, BitMap64]:
    """Where the rows, which have `FILE` and `POSITION`, are. One Spark job."""
    chunks = rows.groupBy(FILE, chunk_of(F.col(POSITION)).alias(CHUNK)).agg(
        bits_of(F.col(POSITION)).alias(BITS)
    )
    return joined_chunks(chunks.collect())


def joined_chunks(chunks: Iterable[Row]) -> dict[int, BitMap64]:
    """The positions in rows with `FILE`, `CHUNK` and `BITS`; files without one are left out."""
    found: dict[int, BitMap64] = {}
    for chunk in chunks:
        bits = np.unpackbits(np.frombuffer(chunk[BITS], dtype=np.uint8), bitorder="little")
        positions = np.flatnonzero(bits).astype(np.uint64)
        if positions.size:
            positions += np.uint64(chunk[CHUNK] << _CHUNK_BITS)
            found.setdefault(chunk[FILE], BitMap64()).update(array("Q", positions.tobytes()))
    return found


def mark(
    target: Target, written: Rewrite, files: Sequence[DataFile], positions: Positions
) -> Marks:
    """Mark the rows at these positions of the files, which are rows of the table until now. The
    vectors are written among the command's files. Raises what the storage raises."""
    touched = {number: files[number] for number in sorted(positions)}
    records = target.records(list(touched.values()))
    gone = [n for n, file in touched.items() if len(positions[n]) >= records[file.path]]
    target.check_counts([touched[n] for n in gone])
    staying = [n for n in touched if n not in gone]
    before = [files[number] for number in staying]
    known = [vector for file in before if (vector := file.deletion_vector) is not None]
    store = store_at(target.layout.location, target.spark)
    earlier = iter(read_vectors(known, store))
    sets, physical = [], []
    for number, file in zip(staying, before, strict=True):
        had = BitMap64() if file.deletion_vector is None else next(earlier)
        sets.append(had | positions[number])
        physical.append(records[file.path] + len(had))
    vectors = written.write_vectors(sets)
    return Marks(
        gone=tuple(files[number] for number in gone),
        before=tuple(before),
        after=tuple(
            marked(file, vector, num_records=count)
            for file, vector, count in zip(before, vectors, physical, strict=True)
        ),
    )
