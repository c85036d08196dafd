"""Files of very large commits, written by COPY in blocks. A thread encodes a block while Postgres
takes the block before.

An add replaces a live file with the same key. To look for that file costs Postgres as much as the
row itself, and of a million files hardly one replaces another. So a block is copied as if none did.
Where the unique key of live files is violated, the block is rolled back, the live files are closed
by key, and the block is copied again.
"""

import asyncio
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from uuid import UUID

from tidegate_protocol.log.actions import file_key
from tidegate_protocol.log.spooled import Spooled, SpooledAdd, SpooledRemove
from tidegate_service.index.postgres import pipeline
from tidegate_service.index.postgres.binary import copy_in, savepoint
from tidegate_service.index.postgres.failures import DriverError, violated_key
from tidegate_service.index.postgres.pipeline import Driver
from tidegate_service.index.rows import file_rows
from tidegate_service.index.rows.bulk_rows import COPY, BulkRows
from tidegate_service.index.rows.file_rows import FILES_KEY, FileChange
from tidegate_service.index.rows.keys import key

ROWS_A_BLOCK = 60_000
"""About thirty megabytes. A larger block keeps more rows in the index's order. But two blocks are
in memory at a time, and a statement may take fifteen seconds where the disk is slow."""
ROWS_OF_FIRST = 5_000
"""Postgres waits for the first block; each further block is twice as large as the one before."""
BYTES_A_BLOCK = 32 * 1024 * 1024
"""Bytes of log lines, with those that are kept in one piece with the last line."""


async def write(driver: Driver, table_id: UUID, version: int, actions: Sequence[Spooled]) -> None:
    """Close the files that a version removes, and open those that it adds. Each is named once."""
    removes = [action for action in actions if isinstance(action, SpooledRemove)]
    for some in file_rows.chunks(removes):
        await _close(driver, table_id, version, some)
    adds = [action for action in actions if isinstance(action, SpooledAdd)]
    rows = BulkRows(table_id, version)
    blocks = _blocks(adds)
    following = next(blocks, None)
    coming = _encoding(rows, following)
    while following is not None:
        block = await coming
        current, following = following, next(blocks, None)
        coming = _encoding(rows, following)
        try:
            await _open(driver, table_id, version, current, block=block)
        finally:
            # No thread is left running after an error.
            await asyncio.wait([coming])


def _encoding(rows: BulkRows, adds: Sequence[SpooledAdd] | None) -> asyncio.Task[bytes]:
    return asyncio.create_task(asyncio.to_thread(rows.block, adds or ()))


async def _open(
    driver: Driver,
    table_id: UUID,
    version: int,
    adds: Sequence[SpooledAdd],
    *,
    block: bytes,
) -> None:
    try:
        async with savepoint(driver):
            await copy_in(driver, COPY, block)
    except DriverError as error:
        if violated_key(error) != FILES_KEY:
            raise
        for some in file_rows.chunks(adds):
            await _close(driver, table_id, version, some)
        await copy_in(driver, COPY, block)


async def _close(driver: Driver, table_id: UUID, version: int, files: Sequence[Spooled]) -> None:
    changes = [
        FileChange(
            table_id,
            version,
            (key(path), "" if vector is None else key(vector)),
            None,
            file.deletion_timestamp if isinstance(file, SpooledRemove) else None,
        )
        for file, (path, vector) in ((file, file_key(file)) for file in files)
    ]
    await pipeline.run(driver, [file_rows.close(changes)])


def _blocks(
    adds: Sequence[SpooledAdd],
    *,
    first_rows: int = ROWS_OF_FIRST,
    most_rows: int = ROWS_A_BLOCK,
    most_bytes: int = BYTES_A_BLOCK,
) -> Iterator[Sequence[SpooledAdd]]:
    """The adds in blocks of about `most_rows` and `most_bytes` at most. A block may exceed
    them a little, so that lines that are kept in one piece are read once."""
    start = end = size = 0
    rows = first_rows
    for source, run in groupby(adds, key=attrgetter("source")):
        end += len(list(run))
        size += source.size
        if end - start >= rows or size >= most_bytes:
            yield adds[start:end]
            start, size, rows = end, 0, min(2 * rows, most_rows)
    if end > start:
        yield adds[start:]
