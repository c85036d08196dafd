"""How large the pages of a Parquet file are, and what they may decode to, without decoding them.

A page of some bytes may stand for gigabytes: many rows share one long value of a dictionary, or of
the value before them, and what is compressed says only in its header how long it is. The headers
lie between the pages and are read one by one; what the footer says of sizes is not believed.
"""

import struct
from collections.abc import Collection, Generator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate_service.storage.checkpoints.errors import TooLarge
from tidegate_service.storage.checkpoints.thrift import Thrift
from tidegate_service.storage.limits import CHECKPOINT_LIMITS, CheckpointLimits

_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
_PLAIN_DICTIONARY, _DELTA_BYTE_ARRAY, _RLE_DICTIONARY = 2, 7, 8
_BODIES = {_DATA: 5, _DICTIONARY: 7, _DATA_V2: 8}
"""Where a page's header has that of its kind, by the field's number."""
_ENCODING = {_DATA: 2, _DATA_V2: 4}
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
_HEADER_BYTES = 1024
_MAX_HEADER_BYTES = 256 * 1024
"""Some writers put the least and the greatest value there, and a file's statistics are long."""
_MOST_LOOKED_AT = 200_000
_CODECS = {"SNAPPY": "snappy", "GZIP": "gzip", "ZSTD": "zstd", "BROTLI": "brotli"}

PAGES_AT_ONCE = 128
"""So many headers and columns are read in a step, which takes milliseconds."""


@dataclass(slots=True)
class Column:
    """One leaf column of a row group; `within` is the wanted one that it lies in. `longest` is the
    length of the longest value of those that rows may share; `values` and `shared` are how many
    there are in all and of shared ones; `pages` are the values and bytes of pages of which each
    value has its own bytes."""

    path: str
    within: str
    repetition: int
    width: int | None
    longest: int = 0
    values: int = 0
    shared: int = 0
    pages: list[tuple[int, int]] = field(default_factory=list)
    page_bytes: int = 0

    @property
    def is_dictionary(self) -> bool:
        """Whether all its values are of a dictionary."""
        return self.width is None and not self.pages and bool(self.longest)

    def most_bytes(self, rows: int) -> int:
        """What any so many rows, one after the other, decode to at most."""
        if self.width is not None:
            return self.width * (rows if not self.repetition else self.values)
        if self.repetition:
            return self.longest * self.shared + sum(size for _, size in self.pages)
        return self.longest * min(rows, self.shared) + _window(self.pages, rows)


def columns_of(
    file: BinaryIO,
    parquet: pq.ParquetFile,
    group: int,
    wanted: Collection[str],
    limits: CheckpointLimits = CHECKPOINT_LIMITS,
) -> Generator[None, None, list[Column]]:
    """The leaf columns of a row group that lie in the wanted ones. Yields now and then, for others
    to go on. Raises `TooLarge`, and `pa.ArrowException` where its pages cannot be read."""
    found = []
    names = frozenset(wanted)
    looked_at = pages = 0
    row_group = parquet.metadata.row_group(group)
    for index in range(row_group.num_columns):
        looked_at += 1
        if looked_at % PAGES_AT_ONCE == 0:
            yield
        schema = parquet.schema.column(index)
        within = _within(schema.path, names)
        if within is None:
            continue
        width = _WIDTHS.get(schema.physical_type)
        if schema.physical_type == "FIXED_LEN_BYTE_ARRAY":
            width = schema.length
        column = Column(schema.path, within, schema.max_repetition_level, width)
        for is_long in _walk(file, row_group.column(index), column, limits.page_bytes):
            pages += 1
            if pages > limits.pages:
                raise TooLarge(
                    f"row group {group} has more than {limits.pages} pages, which are as many as "
                    "are read"
                )
            looked_at += 1
            if is_long or looked_at % PAGES_AT_ONCE == 0:
                yield
        found.append(column)
    return found


def _within(path: str, names: frozenset[str]) -> str | None:
    """Which of the names has the column of this path in it, if one has."""
    end = path.find(".")
    while end >= 0:
        if path[:end] in names:
            return path[:end]
        end = path.find(".", end + 1)
    return path if path in names else None


def _walk(
    file: BinaryIO, chunk: pq.ColumnChunkMetaData, column: Column, most_bytes: int
) -> Generator[bool]:
    """Fill in the column, a page at a time; whether that took long."""
    at = chunk.data_page_offset
    first = chunk.dictionary_page_offset
    if chunk.has_dictionary_page and first and 0 < first < at:
        at = first
    dictionary_longest = 0
    largest = 0
    has_dictionary = False
    while column.values < chunk.num_values:
        yield has_dictionary and not column.values
        header, length = _header(file, at)
        kind, size, stored = (_number_of(header, number, -1) for number in (1, 2, 3))
        if size < 0 or stored < 0:
            raise pa.ArrowInvalid("a page's header says no size")
        if size > most_bytes:
            raise TooLarge(
                f"a page of {column.path} has {size} bytes; at most {most_bytes} are read"
            )
        if kind not in _BODIES:
            at += length + stored
            continue
        body = header.get(_BODIES[kind])
        if not isinstance(body, dict):
            raise pa.ArrowInvalid("a page's header says nothing of its kind")
        if kind == _DICTIONARY:
            if has_dictionary:
                raise pa.ArrowInvalid("a column has more than one dictionary")
            has_dictionary = True
            column.page_bytes += size + stored
            if column.width is None:
                file.seek(at + length)
                raw = file.read(stored)
                dictionary_longest = _longest(raw, size, _number_of(body, 1), chunk.compression)
        elif kind in _ENCODING:
            largest = max(largest, size + stored)
            values, encoding = _number_of(body, 1), body.get(_ENCODING[kind])
            if values < 0:
                raise pa.ArrowInvalid("a page's header says no number of values")
            column.values += values
            if encoding in (_PLAIN_DICTIONARY, _RLE_DICTIONARY):
                column.longest = max(column.longest, dictionary_longest)
                column.shared += values
            elif encoding == _DELTA_BYTE_ARRAY:
                # Each value may begin with all of the one before.
                column.longest = max(column.longest, size)
                column.shared += values
            else:
                column.pages.append((values, size))
        at += length + stored
    column.page_bytes += largest


def _number_of(fields: dict[int, Any], number: int, missing: int = 0) -> int:
    """Raises `pa.ArrowInvalid` where the field is something else."""
    found = fields.get(number, missing)
    if not isinstance(found, int):
        raise pa.ArrowInvalid("a page's header has something else in the place of a number")
    return found


def _window(pages: list[tuple[int, int]], rows: int) -> int:
    """The most bytes of pages that so many values, one after the other, may come from."""
    most, size, values, start = 0, 0, 0, 0
    for index, (count, page) in enumerate(pages):
        size += page
        values += count
        # Without the first of them, the others have fewer values than rows.
        while start < index and values - pages[start][0] >= rows:
            values -= pages[start][0]
            size -= pages[start][1]
            start += 1
        before = pages[start - 1][1] if start else 0
        most = max(most, size + before)
    return most


def _longest(raw: bytes, size: int, count: int, codec: str) -> int:
    """The longest value of a dictionary's page; that of the page where it is not looked into."""
    if codec != "UNCOMPRESSED":
        name = _CODECS.get(codec)
        if name is None or count > _MOST_LOOKED_AT:
            return size
        raw = pa.Codec(name).decompress(raw, decompressed_size=size, asbytes=True)
    longest, at = 1, 0
    for _ in range(min(count, _MOST_LOOKED_AT + 1)):
        if at + 4 > len(raw):
            return size
        (length,) = struct.unpack_from("<I", raw, at)
        longest = max(longest, length)
        at += 4 + length
    return longest if count <= _MOST_LOOKED_AT else size


def _header(file: BinaryIO, at: int) -> tuple[dict[int, Any], int]:
    """A page's header by the numbers of its fields, and its length."""
    wanted = _HEADER_BYTES
    while True:
        file.seek(at)
        raw = file.read(wanted)
        try:
            thrift = Thrift(raw)
            return thrift.read_struct(), thrift.at
        except IndexError:
            if len(raw) < wanted or wanted >= _MAX_HEADER_BYTES:
                raise pa.ArrowInvalid("a page's header cannot be read") from None
            wanted *= 16
