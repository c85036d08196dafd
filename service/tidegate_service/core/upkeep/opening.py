"""What a reader reads of a table's log to open the table."""

import asyncio
from dataclasses import dataclass

from tidegate_protocol.checkpoint.last_checkpoint import MOST_BYTES, Pointer, pointer_of
from tidegate_protocol.log.file_names import CommitFile, parse
from tidegate_service.core.context import Context
from tidegate_service.core.errors import ServiceError
from tidegate_service.core.ports.records import TableHead
from tidegate_service.core.ports.store.storage import Log, UnreadableFile

POINTER = "_last_checkpoint"
PATIENCE_S = 5.0
"""Of a store that takes longer, the answer is that it cannot say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """The newest checkpoint that `_last_checkpoint` points to, whoever wrote it, and the commits
    behind it. `checkpoint_bytes` is None where its writer did not say."""

    checkpoint_version: int | None
    checkpoint_bytes: int | None
    commits: int
    commit_bytes: int


async def opening_of(context: Context, table: TableHead) -> Opening | None:
    """What there is to read up to the table's last published version; None where the store cannot
    say. Compacted files are left out: some readers pass over them."""
    log = context.storage.log(table.location, who=context.who)
    try:
        async with context.openings.turn(context.who), asyncio.timeout(PATIENCE_S):
            return await _opening(log, table.published_version)
    except (ServiceError, UnreadableFile, TimeoutError):
        return None


async def _opening(log: Log, head: int) -> Opening:
    pointer = await _pointer(log)
    if pointer is not None and not 0 <= pointer.version <= head:
        pointer = None
    version = None if pointer is None else pointer.version
    commits = size = 0
    async for entries in log.entries(behind=version):
        for entry in entries:
            file = parse(entry.name)
            if isinstance(file, CommitFile) and file.version <= head:
                commits, size = commits + 1, size + entry.size
    return Opening(
        checkpoint_version=version,
        checkpoint_bytes=None if pointer is None else pointer.size,
        commits=commits,
        commit_bytes=size,
    )


async def _pointer(log: Log) -> Pointer | None:
    try:
        content = await log.read_file(POINTER, most_bytes=MOST_BYTES)
    except UnreadableFile:
        return None
    return None if content is None else pointer_of(content)
