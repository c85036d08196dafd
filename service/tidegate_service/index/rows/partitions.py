"""Partitions as index keys, so that a scan reads the files of those that it asks for.

A key is never one of two partitions: what is found out about it holds for all of its files. One
partition may have two keys (an older release wrote the columns in the order of the action).
"""

from collections.abc import Iterable
from hashlib import sha256
from uuid import UUID

import msgspec

from tidegate_protocol.log.actions import Add, Metadata, PartitionValues
from tidegate_service.index.postgres import pipeline
from tidegate_service.index.postgres.parameters import int8, uuid
from tidegate_service.index.postgres.pipeline import Driver, Query, Statement

UNPARTITIONED = ""
"""The key of a file without partition values; the index over partitions leaves it out."""

MAX_KEY_BYTES = 256
"""A path and a deletion vector's id stand beside it in an index entry of at most 2,700 bytes."""

HASHED = "sha256:"

_ENCODER = msgspec.json.Encoder(order="sorted")
_AS_THEY_COME = msgspec.json.Encoder()

# What was removed before was live only while the table had no partitions.
_UNINDEX = Statement("""
    UPDATE files SET partition = NULL
    WHERE table_id = $1 AND partition = '' AND (removed_version IS NULL OR removed_version > $2)
""")


def partition_key(values: PartitionValues) -> str:
    """The partition's values as JSON with their columns in order, `sha256:` and their digest in
    hex where that is long, `UNPARTITIONED` where there are none."""
    return _key(_ENCODER.encode(values)) if values else UNPARTITIONED


def filled_in_key(values: PartitionValues) -> str:
    """The key that rows got which were there before keys were."""
    return _key(values_text(values))


def values_text(values: PartitionValues) -> bytes:
    """The column `partition_values`: JSON in the order of the action."""
    return _AS_THEY_COME.encode(values)


def _key(data: bytes) -> str:
    if len(data) <= MAX_KEY_BYTES:
        return data.decode()
    return HASHED + sha256(data).hexdigest()


def makes_partitioned(before: Metadata | None, after: Metadata | None) -> bool:
    """Whether a commit gives partition columns to a table that had none."""
    return (
        before is not None
        and not before.partition_columns
        and after is not None
        and bool(after.partition_columns)
    )


def leaves_unpartitioned(
    before: Metadata | None,
    after: Metadata | None,
    added: Iterable[Add | None],
    *,
    leaves_others: bool,
) -> bool:
    """Whether a commit leaves files without partition values in a partitioned table: those that
    it adds itself, or those from before it had partitions; `leaves_others` says whether any are
    live that it does not add. No writer that keeps to the protocol makes such a commit."""
    if after is None or not after.partition_columns:
        return False
    if leaves_others and makes_partitioned(before, after):
        return True
    return any(add is not None and not add.partition_values for add in added)


async def unindex_unpartitioned(driver: Driver, table_id: UUID, *, at: int) -> None:
    """Let scans of the version `at` and those after it find the files without partition values,
    and test each by itself. Goes through all files of the table."""
    await pipeline.run(driver, [Query(_UNINDEX, uuid(table_id), int8(at))])
