"""Checkpoints that a caller asks for, of one table."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from uuid import uuid4

from tidegate_protocol.base.problems import Code
from tidegate_service.core.checkpoints.checkpoint import CheckpointWritten, write_checkpoint
from tidegate_service.core.context import Context
from tidegate_service.core.errors import ServiceError, Unavailable
from tidegate_service.core.observe.telemetry import UpkeepKind
from tidegate_service.core.ports.records import TableHead
from tidegate_service.core.ports.upkeep.upkeep import UpkeepStanding
from tidegate_service.core.tables.lookup import find_head, get_head

KIND = UpkeepKind.CHECKPOINT
CLAIM_S = 15.0
"""Shorter than callers wait: where an instance dies, another one writes."""
RENEWED_EVERY_S = 5.0
CLAIMED_WITHIN_S = 30.0
"""As long as a caller waits for another writer of the table's checkpoints."""
ASKED_EVERY_S = 1.0
ENDED_WITHIN_S = 5.0

logger = logging.getLogger("tidegate.upkeep")


async def checkpoint_table(
    context: Context, ref: str, version: int | None
) -> tuple[TableHead, CheckpointWritten]:
    """The table, and the checkpoint that was written of it. The writing goes on where the caller
    leaves, and is done once for all who ask for the same. Raises as `write_checkpoint` does, and as
    `claimed`."""
    table = await get_head(context, ref)
    if table.published_version < table.latest_version:
        context.wake_publisher(table.id)

    async def write() -> CheckpointWritten:
        return await write_checkpoint(
            context.index,
            context.storage,
            # The table may have been quarantined while others wrote.
            await find_head(context, table.id),
            version,
            who=context.who,
            faults=context.faults,
        )

    written = await context.checkpoints.written(
        (table.id, table.latest_version if version is None else version),
        write,
        claim=claimed(context.upkeep, table.id, monotonic_s=context.monotonic_s),
        principal=context.caller.principal.name,
        running=context.running,
    )
    return table, written


@asynccontextmanager
async def claimed(
    upkeep: UpkeepStanding,
    table_id: str,
    *,
    monotonic_s: Callable[[], float],
    within_s: float = CLAIMED_WITHIN_S,
) -> AsyncIterator[None]:
    """The claim that the caretakers of all instances have, too, when they write a checkpoint of the
    table. Raises `Unavailable` where another has the claim for `within_s`."""
    by, ended = str(uuid4()), asyncio.Event()
    until_s = monotonic_s() + within_s
    renewing = asyncio.create_task(_renewed(upkeep, table_id, by, until=ended))
    try:
        while not await upkeep.claim_now(table_id, KIND, by=by, for_s=CLAIM_S):
            if monotonic_s() >= until_s:
                raise Unavailable(
                    "another checkpoint of the table is being written; ask again when that is done",
                    code=Code.BACKPRESSURE,
                )
            await asyncio.sleep(ASKED_EVERY_S)
        yield
    finally:
        ended.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(ENDED_WITHIN_S):
                await asyncio.gather(renewing, return_exceptions=True)
                # Also where the answer to the claim was lost.
                await _quietly(upkeep.release_claim(table_id, KIND, by=by))


async def _renewed(upkeep: UpkeepStanding, table_id: str, by: str, *, until: asyncio.Event) -> None:
    while True:
        with suppress(TimeoutError):
            await asyncio.wait_for(until.wait(), RENEWED_EVERY_S)
            return
        await _quietly(upkeep.extend_claim(table_id, KIND, by=by, for_s=CLAIM_S))


async def _quietly(call: Awaitable[None]) -> None:
    """A claim ends by itself, and what two write at once is right, too: that costs time only."""
    try:
        await call
    except ServiceError as error:
        logger.warning("a claim was not changed", extra={"reason": error.detail})
