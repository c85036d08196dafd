"""Checkpoint files as actions, a batch at a time (PROTOCOL.md, "Checkpoints").

A checkpoint of a million files is hundreds of megabytes and one row group may hold all of it,
so nothing here ever holds more than a batch of rows and the pages they come from.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import BinaryIO, cast

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate_protocol.actions import Action
from tidegate_protocol.codec import InvalidActionError, decode
from tidegate_protocol.text import excerpt
from tidegate_service.core.ports import UnreadableFile
from tidegate_service.storage.checkpoint_rows import (
    FILES,
    KINDS,
    PARSED_STATS,
    PASSED_OVER,
    STATS,
    InvalidRow,
    actions_of,
)

ROWS_AT_ONCE = 4096
MAX_LINE_BYTES = 64 * 1024 * 1024
# Of each column that is read: the file is never read into memory as a whole.
_BUFFER_BYTES = 1024 * 1024


async def checkpoint_actions(
    open_file: Callable[[str], BinaryIO | None], name: str
) -> AsyncIterator[Sequence[Action]]:
    """`core.ports.Log.checkpoint_actions` over files that are opened, read and closed in
    threads. Tombstones (`remove`) are passed over: they say nothing about a snapshot."""
    file = await asyncio.to_thread(open_file, name)
    if file is None:
        raise UnreadableFile(f"{excerpt(name)} is missing")
    batches = _batches(file, name)
    try:
        while (batch := await asyncio.to_thread(next, batches, None)) is not None:
            yield batch
    finally:
        await asyncio.to_thread(file.close)


def _batches(file: BinaryIO, name: str) -> Iterator[list[Action]]:
    return _json_batches(file, name) if name.endswith(".json") else _parquet_batches(file, name)


def _json_batches(file: BinaryIO, name: str) -> Iterator[list[Action]]:
    batch: list[Action] = []
    number = 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(line) > MAX_LINE_BYTES:
            raise UnreadableFile(f"{excerpt(name)}, line {number} is over {MAX_LINE_BYTES} bytes")
        if not line.strip():
            continue
        try:
            batch.append(decode(line))
        except InvalidActionError as error:
            raise UnreadableFile(f"{excerpt(name)}, line {number}: {error}") from None
        if len(batch) == ROWS_AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch


def _parquet_batches(file: BinaryIO, name: str) -> Iterator[list[Action]]:
    try:
        parquet = pq.ParquetFile(file, buffer_size=_BUFFER_BYTES, pre_buffer=False)
        columns_there = parquet.schema_arrow.names
        kinds = [kind for kind in KINDS if kind in columns_there]
        if not kinds:
            if any(kind in columns_there for kind in PASSED_OVER):
                return
            raise UnreadableFile(f"{excerpt(name)} has none of the columns {list(KINDS)}")
        for group in range(parquet.num_row_groups):
            columns = [
                column for kind in kinds for column in _columns_to_read(parquet, group, kind)
            ]
            for batch in parquet.iter_batches(
                ROWS_AT_ONCE, row_groups=[group], columns=columns, use_threads=False
            ):
                for kind in kinds:
                    actions = actions_of(kind, cast(pa.StructArray, batch.column(kind)))
                    if actions:
                        yield actions
    except InvalidRow as error:
        raise UnreadableFile(f"{excerpt(name)}: {error}") from None
    except (pa.ArrowException, OSError) as error:
        # Arrow's errors are OSError, ValueError and others; its own texts name no path of ours.
        raise UnreadableFile(
            f"{excerpt(name)} cannot be read as Parquet: {excerpt(str(error))}"
        ) from error


def _columns_to_read(parquet: pq.ParquetFile, group: int, kind: str) -> list[str]:
    """The columns of an action in a row group. Of the two forms of statistics the struct is many
    times as expensive as the text and mostly says the same, so it is read where that is missing."""
    struct = parquet.schema_arrow.field(kind).type
    if not pa.types.is_struct(struct):
        raise InvalidRow(f"the column {kind} is {struct}; expected a struct")
    names = [struct.field(index).name for index in range(struct.num_fields)]
    if kind == FILES:
        needs_parsed = PARSED_STATS in names and (
            STATS not in names or not _always_there(parquet, group, f"{FILES}.{STATS}")
        )
        names = [
            name
            for name in names
            if not name.endswith("_parsed") or (name == PARSED_STATS and needs_parsed)
        ]
    return [f"{kind}.{name}" for name in names]


def _always_there(parquet: pq.ParquetFile, group: int, column: str) -> bool:
    """Whether the column is known to be as often null as the row is of another kind."""
    nulls: dict[str, int | None] = {}
    row_group = parquet.metadata.row_group(group)
    for index in range(row_group.num_columns):
        chunk = row_group.column(index)
        if chunk.path_in_schema in (column, f"{FILES}.path"):
            statistics = chunk.statistics
            known = statistics is not None and statistics.has_null_count
            nulls[chunk.path_in_schema] = statistics.null_count if known else None
    found = nulls.get(column)
    return found is not None and found == nulls.get(f"{FILES}.path")
