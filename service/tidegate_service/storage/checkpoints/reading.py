"""Checkpoint files as actions, a batch at a time (PROTOCOL.md, "Checkpoints")."""

import os
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from contextlib import AsyncExitStack, aclosing, closing
from typing import BinaryIO

from tidegate_protocol.base.text import excerpt
from tidegate_protocol.log.actions import Action
from tidegate_protocol.log.codec import InvalidActionError, decode
from tidegate_protocol.log.lines import decode_line
from tidegate_service.core.ports.store.storage import MissingFile, UnreadableFile
from tidegate_service.core.sharing.pools import Share
from tidegate_service.storage.checkpoints.apart.places import Place, Places
from tidegate_service.storage.checkpoints.apart.readers import PROCESSES
from tidegate_service.storage.checkpoints.budget import Budget
from tidegate_service.storage.checkpoints.errors import TooLarge
from tidegate_service.storage.checkpoints.parts import BATCH_BYTES
from tidegate_service.storage.steps import yielded

_BLOCK_BYTES = 512
"""What `st_blocks` counts in, whatever the file system's blocks are."""


async def checkpoint_actions(
    open_file: Callable[[str], BinaryIO | None],
    name: str,
    budget: Budget,
    share: Share,
    places: Places,
) -> AsyncIterator[Sequence[Action]]:
    """`core.ports.index.Log.checkpoint_actions` over files that are opened, read and closed in
    the threads of `share`."""
    async with AsyncExitStack() as stack:
        if name.endswith(".json"):
            steps = _steps(_json_batches, open_file, name, budget)
        else:
            place = await stack.enter_async_context(places.one(share.who))
            steps = _held(place, _steps(_parquet_batches, open_file, name, budget))
        batches = await stack.enter_async_context(aclosing(yielded(steps, share)))
        async for batch in batches:
            yield batch


def _held(
    place: Place, steps: Generator[list[Action] | None]
) -> Generator[list[Action] | None, None, None]:
    with place.held(), closing(steps):
        yield from steps


def _steps(
    batches: Callable[[BinaryIO, str, Budget], Iterator[list[Action] | None]],
    open_file: Callable[[str], BinaryIO | None],
    name: str,
    budget: Budget,
) -> Generator[list[Action] | None, None, None]:
    """The actions, and None where there is nothing yet and others may go on."""
    file = open_file(name)
    if file is None:
        raise MissingFile(f"{excerpt(name)} is missing")
    with file:
        budget.grant(_stored_bytes(file))
        try:
            yield from batches(file, name, budget)
        except TooLarge as error:
            raise UnreadableFile(f"{excerpt(name)} is too large to be read: {error}") from None


def _parquet_batches(file: BinaryIO, name: str, budget: Budget) -> Iterator[list[Action] | None]:
    size = file.seek(0, os.SEEK_END)
    with closing(PROCESSES.lines(file, name, budget, size=size)) as found:
        for lines in found:
            try:
                yield [decode(line) for line in lines] or None
            except InvalidActionError as error:
                raise UnreadableFile(f"{excerpt(name)}: {error}") from None


def _stored_bytes(file: BinaryIO) -> int:
    """How much of the file is stored. A local one may have holes, which cost whoever made them
    nothing, and are as long as they say."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    try:
        number = file.fileno()
    except OSError:
        # An object has no holes, and is no file of the system.
        return size
    return min(size, os.fstat(number).st_blocks * _BLOCK_BYTES)


def _json_batches(file: BinaryIO, name: str, budget: Budget) -> Iterator[list[Action] | None]:
    most = budget.limits
    batch: list[Action] = []
    number = size = 0
    while line := file.readline(most.line_bytes + 1):
        number += 1
        if len(line) > most.line_bytes:
            raise UnreadableFile(f"{excerpt(name)}, line {number} is over {most.line_bytes} bytes")
        if line.strip():
            try:
                batch += decode_line(line)
            except InvalidActionError as error:
                raise UnreadableFile(f"{excerpt(name)}, line {number}: {error}") from None
        size += len(line)
        if number % most.rows == 0 or size > BATCH_BYTES:
            budget.take(sum(len(action.raw) for action in batch))
            yield batch or None
            batch, size = [], 0
    if batch:
        budget.take(sum(len(action.raw) for action in batch))
        yield batch
