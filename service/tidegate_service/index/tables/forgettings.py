"""Which tables are being forgotten, in Postgres."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

from sqlalchemy import TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from tidegate_service.core.access.roles import ANYBODY, Caller, Principal
from tidegate_service.core.errors import ServiceError
from tidegate_service.core.ports.upkeep.forgettings import Forgetting
from tidegate_service.index.postgres.connections import Connections

logger = logging.getLogger("tidegate.index")

CLAIM_S = 60.0
"""How long a claim lasts that nobody renews: where its instance died, another goes on then."""
RENEW_S = 20.0

_UNTIL = "clock_timestamp() + CAST(:for_s AS float8) * interval '1 second'"
_KEEP = text(f"""
    INSERT INTO forgettings
        (table_id, principal, request_id, asked_at, claimed_by, claimed_until)
    SELECT id, :principal, :request_id, clock_timestamp(), gen_random_uuid(), {_UNTIL}
    FROM tables WHERE id = :table_id
    ON CONFLICT (table_id) DO UPDATE SET
        principal = excluded.principal, request_id = excluded.request_id, failures = 0,
        claimed_by = excluded.claimed_by, claimed_until = excluded.claimed_until
    RETURNING claimed_by
""")
_OWN = "WHERE table_id = :table_id AND claimed_by = :claim"
_RENEW = text(f"UPDATE forgettings SET claimed_until = {_UNTIL} {_OWN}")
_PUT_OFF = text(f"UPDATE forgettings SET claimed_until = {_UNTIL}, failures = failures + 1 {_OWN}")
_DROP = text(f"DELETE FROM forgettings {_OWN}")
_NEXT = text(f"""
    UPDATE forgettings SET claimed_by = gen_random_uuid(), claimed_until = {_UNTIL}
    WHERE table_id = (
        SELECT table_id FROM forgettings WHERE claimed_until < clock_timestamp()
        ORDER BY asked_at LIMIT 1 FOR UPDATE SKIP LOCKED
    )
    RETURNING table_id, principal, request_id, claimed_by, failures
""")


class PostgresForgettings:
    """Implements `core.ports.upkeep.forgettings.Forgettings`."""

    def __init__(self, engine: AsyncEngine, *, answer_timeout_s: float = 20.0) -> None:
        self._connections = Connections(engine, answer_timeout_s=answer_timeout_s)

    async def keep(self, table_id: str, *, by: Caller) -> str:
        asked = {"principal": by.name, "request_id": by.request_id, "for_s": CLAIM_S}

        async def keep(connection: AsyncConnection) -> str:
            kept = await connection.execute(_KEEP, {"table_id": UUID(table_id), **asked})
            # A table that is gone by now has no claim, and whoever works on it finds that out.
            return str(kept.scalar_one_or_none() or "")

        return await self._connections.write(keep)

    @asynccontextmanager
    async def held(self, table_id: str, claim: str) -> AsyncIterator[None]:
        renewing = asyncio.create_task(self._renew(table_id, claim), name="renewing")
        try:
            yield
        finally:
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)

    async def drop(self, table_id: str, claim: str) -> None:
        await self._change(_DROP, table_id, claim)

    async def next(self) -> Forgetting | None:
        async def claim(connection: AsyncConnection) -> Forgetting | None:
            row = (await connection.execute(_NEXT, {"for_s": CLAIM_S})).one_or_none()
            if row is None:
                return None
            return Forgetting(
                table_id=str(row.table_id),
                by=Caller(principal=_principal(row.principal), request_id=row.request_id),
                claim=row.claimed_by,
                failures=row.failures,
            )

        return await self._connections.write(claim)

    async def put_off(self, table_id: str, claim: str, *, again_in_s: float) -> None:
        await self._change(_PUT_OFF, table_id, claim, for_s=again_in_s)

    async def _renew(self, table_id: str, claim: str) -> None:
        while True:
            await asyncio.sleep(RENEW_S)
            try:
                await self._change(_RENEW, table_id, claim, for_s=CLAIM_S)
            except ServiceError as error:
                logger.warning("a claim was not renewed", extra={"reason": error.detail})

    async def _change(
        self, statement: TextClause, table_id: str, claim: str, **values: float
    ) -> None:
        asked = {"table_id": UUID(table_id), "claim": claim, **values}
        await self._connections.write(lambda c: c.execute(statement, asked))


def _principal(name: str) -> Principal:
    """Whoever asked, with a right to nothing: that was looked at when it was asked for."""
    return ANYBODY if name == ANYBODY.name else Principal(name=name, grants=())
