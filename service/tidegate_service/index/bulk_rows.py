"""Rows of `files` as blocks of Postgres's binary COPY, for commits of very many adds.

Layout: "Binary Format" of COPY in the manual of Postgres; numeric_recv in
src/backend/utils/adt/numeric.c. What all rows of a commit, or of a partition, have in common is
packed once.
"""

import struct
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from uuid import UUID

import msgspec

from tidegate_protocol.actions import PartitionValues
from tidegate_protocol.paths import identity
from tidegate_protocol.spooled import SpooledAdd
from tidegate_service.index.keys import MAX_KEY_BYTES, key
from tidegate_service.index.partitions import partition_key

COPY = """
    COPY files (
        table_id, added_version, dv_id, partition_values, partition, path, size, stats, action
    ) FROM STDIN (FORMAT BINARY)
"""

_BEGIN = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)
_END = struct.pack(">h", -1)
_HEAD = struct.Struct(">hi16siqi").pack
_LENGTH = struct.Struct(">i").pack
# A numeric, of digits to the base of ten thousand, and the length of what comes next.
_SMALL = struct.Struct(">ihhhh2hi").pack
_LARGE = struct.Struct(">ihhhh5hi").pack


class _Stats(msgspec.Struct, gc=False):
    stats: str | None = None


class _Line(msgspec.Struct, gc=False):
    add: _Stats | None = None


_LINES = msgspec.json.Decoder(_Line)


class BulkRows:
    """Encodes adds that one version of one table opens. For one thread at a time."""

    def __init__(self, table_id: UUID, version: int) -> None:
        # The number of columns, the first two, and an empty deletion vector's id.
        self._head = _HEAD(9, 16, table_id.bytes, 8, version, 0)
        self._partitions: dict[int, tuple[PartitionValues, bytes]] = {}

    def block(self, adds: Sequence[SpooledAdd]) -> bytes:
        """All that one COPY takes. In the order of the index that the rows go into, which takes
        the database two thirds of the time that any other order does."""
        rows: list[tuple[bytes, bytes]] = []
        for _, run in groupby(adds, key=_source):
            self._append(rows, list(run))
        rows.sort()
        return b"".join([_BEGIN, *[row for _, row in rows], _END])

    def _append(self, rows: list[tuple[bytes, bytes]], adds: Sequence[SpooledAdd]) -> None:
        """The rows of adds that are kept together, each behind its path."""
        source = adds[0].source
        text = source.text()
        lines, found = text.split(b"\n"), _LINES.decode_lines(text)
        heads = self._partitions
        for add in adds:
            at, values, size = add.at, add.partition_values, add.size
            path = add.path.encode()
            if b"%" in path or b":" in path or len(path) > MAX_KEY_BYTES:
                path = key(identity(add.path)).encode()
            known = heads.get(id(values))
            head = self._head_of(values) if known is None else known[1]
            body = found[at].add
            assert body is not None, "an add's line holds an add"
            line = lines[at]
            stats = b"" if body.stats is None else body.stats.encode()
            stats_length = -1 if body.stats is None else len(stats)
            if size < 100_000_000:
                high, low = divmod(size, 10_000)
                fields = _SMALL(12, 2, 1, 0, 0, high, low, stats_length)
            else:
                fields = _LARGE(18, 5, 4, 0, 0, *_digits(size), stats_length)
            row = b"".join(
                (head, _LENGTH(len(path)), path, fields, stats, _LENGTH(len(line)), line)
            )
            rows.append((path, row))

    def _head_of(self, values: PartitionValues) -> bytes:
        # Adds of one body share their values, which are held here lest their place be reused.
        known = self._partitions.get(id(values))
        if known is None:
            text, partition = msgspec.json.encode(values), partition_key(values).encode()
            head = b"".join(
                (self._head, _LENGTH(len(text)), text, _LENGTH(len(partition)), partition)
            )
            known = self._partitions[id(values)] = (values, head)
        return known[1]


def _digits(size: int) -> Iterator[int]:
    """The five of a number of 64 bits, the highest first."""
    return (size // 10_000**place % 10_000 for place in (4, 3, 2, 1, 0))


_source = attrgetter("source")
