"""A checkpoint's Parquet file as actions, a batch at a time.

A checkpoint of a million files is hundreds of megabytes and one row group may hold all of it,
so nothing here ever holds more than a batch of rows and the pages they come from. A batch has so
many rows as decode to some megabytes, whatever they are encoded as (`parquet_pages`), and what all
of them decode to is bounded by how large the files are.
"""

from collections.abc import Generator, Sequence
from typing import BinaryIO, cast

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate_protocol.base.text import excerpt
from tidegate_protocol.log.actions import Action
from tidegate_service.core.ports.store.storage import UnreadableFile
from tidegate_service.storage.checkpoints.budget import Budget
from tidegate_service.storage.checkpoints.errors import TooLarge
from tidegate_service.storage.checkpoints.footer import check_footer
from tidegate_service.storage.checkpoints.parquet_pages import Column, columns_of
from tidegate_service.storage.checkpoints.parts import (
    BATCH_BYTES,
    MAX_ROW_BYTES,
    Parts,
    refuse_repeated,
    refuse_unknown,
)
from tidegate_service.storage.checkpoints.rows import (
    FILES,
    KINDS,
    OF_INT96,
    PARSED_STATS,
    PASSED_OVER,
    STATS,
    InvalidRow,
    actions_of,
)
from tidegate_service.storage.limits import CheckpointLimits

_ROW_BYTES = 16
_ROWS = (1024, 256, 64, 16, 4, 1)
_BUFFER_BYTES = 1024 * 1024
"""Of each column that is read at most: the file is never read into memory as a whole."""
_BUFFERS_BYTES = 64 * 1024 * 1024


def parquet_batches(file: BinaryIO, name: str, budget: Budget) -> Generator[list[Action] | None]:
    """The actions, and None where there is nothing yet and others may go on. Raises
    `UnreadableFile` and `TooLarge`. A file may be such that Arrow ends the process: see `apart`."""
    limits = budget.limits
    try:
        yield from check_footer(file, most_columns=limits.columns)
        parquet = pq.ParquetFile(file, buffer_size=_BUFFER_BYTES, pre_buffer=False)
        schema = parquet.schema_arrow
        refuse_repeated(schema.names, "the file")
        kinds = [kind for kind in KINDS if kind in schema.names]
        if not kinds:
            if any(kind in schema.names for kind in PASSED_OVER):
                return
            raise UnreadableFile(f"{excerpt(name)} has none of the columns {list(KINDS)}")
        for group in range(parquet.num_row_groups):
            columns = [
                column
                for kind in kinds
                for column in _columns_to_read(parquet.metadata, schema, group, kind)
            ]
            found = yield from columns_of(file, parquet, group, columns, limits)
            reader = pq.ParquetFile(
                file,
                metadata=parquet.metadata,
                # What many rows share stays in one place until they are looked at.
                read_dictionary=[
                    column.path for column in found if column.repetition and column.is_dictionary
                ],
                buffer_size=min(_BUFFER_BYTES, _BUFFERS_BYTES // max(len(found), 1)),
                pre_buffer=False,
                coerce_int96_timestamp_unit=OF_INT96,
            )
            parts = {kind: Parts(kind, found, most_values=limits.part_values) for kind in kinds}
            for batch in reader.iter_batches(
                _rows_at_once(found, limits), row_groups=[group], columns=columns, use_threads=False
            ):
                budget.take(_ROW_BYTES * len(batch))
                yield None
                for kind in kinds:
                    for rows in parts[kind].of(
                        cast(pa.StructArray, batch.column(kind)), budget.take
                    ):
                        yield actions_of(kind, rows) if rows is not None else None
    except InvalidRow as error:
        raise UnreadableFile(f"{excerpt(name)}: {error}") from None
    except MemoryError:
        raise  # Arrow's, too.
    except (pa.ArrowException, OSError, OverflowError, ValueError) as error:
        # Arrow's errors are OSError, ValueError and others; its own texts name no path of ours.
        # A date may be one that Python has not, a text no UTF-8, and a place before the file.
        raise UnreadableFile(
            f"{excerpt(name)} cannot be read as Parquet: {excerpt(str(error))}"
        ) from error


def _rows_at_once(columns: Sequence[Column], limits: CheckpointLimits) -> int:
    """So many rows as decode to no more than a batch may. Raises `TooLarge`."""
    pages = sum(column.page_bytes for column in columns)
    if pages > limits.pages_bytes:
        raise TooLarge(
            f"its pages take {pages} bytes at a time; at most {limits.pages_bytes} may be"
        )
    lists = [column for column in columns if column.repetition]
    values = sum(column.values for column in lists)
    if values > limits.list_values:
        raise TooLarge(
            f"its lists and maps have {values} values in a row group; at most "
            f"{limits.list_values} are read"
        )
    in_place = sum(column.most_bytes(1) for column in lists if not column.is_dictionary)
    if in_place > limits.lists_bytes:
        raise TooLarge(f"its lists and maps may take {in_place} bytes in a row group")
    plain = [column for column in columns if not column.repetition]
    for rows in (limits.rows, *_ROWS):
        size = sum(column.most_bytes(rows) for column in plain)
        if size <= BATCH_BYTES:
            return rows
    longest = max(column.longest for column in plain)
    if longest > limits.line_bytes:
        raise TooLarge(f"a value has up to {longest} bytes; at most {limits.line_bytes} are read")
    if size > MAX_ROW_BYTES:
        raise TooLarge(f"a row of it may take {size} bytes; at most {MAX_ROW_BYTES} are read")
    return 1


def _columns_to_read(
    metadata: pq.FileMetaData, schema: pa.Schema, group: int, kind: str
) -> list[str]:
    """The columns of an action in a row group. Of the two forms of statistics the struct is many
    times as expensive as the text and mostly says the same, so it is read where that is missing."""
    struct = schema.field(kind).type
    if not pa.types.is_struct(struct):
        raise InvalidRow(f"the column {kind} is {excerpt(str(struct))}; expected a struct")
    names = [struct.field(index).name for index in range(struct.num_fields)]
    refuse_repeated(names, kind)
    if kind == FILES:
        needs_parsed = PARSED_STATS in names and (
            STATS not in names or not _always_there(metadata, group, f"{FILES}.{STATS}")
        )
        names = [
            name
            for name in names
            if not name.endswith("_parsed") or (name == PARSED_STATS and needs_parsed)
        ]
    read = frozenset(names)
    for index in range(struct.num_fields):
        field = struct.field(index)
        if field.name in read:
            refuse_unknown(field.type, f"{kind}.{field.name}")
    return [f"{kind}.{name}" for name in names]


def _always_there(metadata: pq.FileMetaData, group: int, column: str) -> bool:
    """Whether the column is known to be as often null as the row is of another kind."""
    nulls: dict[str, int | None] = {}
    row_group = metadata.row_group(group)
    for index in range(row_group.num_columns):
        chunk = row_group.column(index)
        if chunk.path_in_schema in (column, f"{FILES}.path"):
            statistics = chunk.statistics
            known = statistics is not None and statistics.has_null_count
            nulls[chunk.path_in_schema] = statistics.null_count if known else None
    found = nulls.get(column)
    return found is not None and found == nulls.get(f"{FILES}.path")
