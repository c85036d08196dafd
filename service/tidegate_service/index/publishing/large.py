"""A version that is published by itself, since it is long as it is stored: up to half a gigabyte.

Tables may have such ones by the dozen, and many are published at a time. What is held of all
together is bounded, and counted from before it is read.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_protocol.log.content import Content
from tidegate_service.core.log.files.log_file import FileMemory
from tidegate_service.index.limits import IndexLimits
from tidegate_service.index.postgres import pipeline
from tidegate_service.index.postgres.connections import driver_of
from tidegate_service.index.postgres.parameters import int8, uuid
from tidegate_service.index.postgres.pipeline import Query, Statement, as_int
from tidegate_service.index.postgres.standby import WAIT_FOR_STANDBY
from tidegate_service.index.reading.contents import stored_of
from tidegate_service.index.rows.records import expanded
from tidegate_service.index.rows.stored_content import Stored, StoredContent, is_large

_SIZE = Statement("""
    SELECT octet_length(content) FROM commits
    WHERE table_id = $1 AND version = $2 AND content_held
""")


class HeldContent(StoredContent):
    """A large content whose bytes, as they are stored, count until nobody has it."""

    __slots__ = ("_give_back",)

    def __init__(self, stored: Stored, give_back: Callable[[], None]) -> None:
        super().__init__(stored)
        self._give_back = give_back

    def __del__(self) -> None:
        self._give_back()


async def large_content(
    connection: AsyncConnection,
    limits: IndexLimits,
    table_id: UUID,
    version: int,
    *,
    memory: FileMemory,
) -> Content | None:
    """The content of a version that waits; None where it does not any more. The COMMIT then waits
    as in `unpublished.unpublished_versions`. Raises `StorageUnavailable` where memory has no room
    for what is stored, of which the table has a share."""
    driver = await driver_of(connection)
    (rows,) = await pipeline.run(driver, [Query(_SIZE, uuid(table_id), int8(version))])
    if not rows:
        return None
    who, size = str(table_id), as_int(rows[0][0])
    memory.take(who, size)
    give_back = partial(memory.give_back, who, size)
    try:
        stored = await stored_of(connection, limits, table_id, version, is_held=True)
        if stored is None:
            give_back()
            return None
        await connection.execute(WAIT_FOR_STANDBY)
        if is_large(stored):
            return HeldContent(stored, give_back)
        content = await asyncio.to_thread(expanded, stored)
    except BaseException:
        give_back()
        raise
    give_back()
    return content
