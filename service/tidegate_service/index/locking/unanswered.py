"""COMMITs that were given up while they waited for a synchronous standby.

Nothing may end such a wait but the standby: what the transaction wrote would be seen then, and the
standby would not have it. So each one that is given up leaves a session at the server, which takes
no more of these than `max_connections` says; the last ones are for whoever looks for the standby.
"""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_service.core.errors import IndexUnavailable
from tidegate_service.index.postgres.connections import Connections
from tidegate_service.index.postgres.engine import APPLICATION_NAME

_LEFT = text("""
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND usename = current_user
        AND application_name = :application_name
        AND wait_event = 'SyncRep'
        AND query_start < clock_timestamp() - make_interval(secs => :seconds)
""")


class Unanswered:
    """Those of one instance. Where `most` sessions were left so, those of other instances included,
    nothing more is begun."""

    def __init__(self, connections: Connections, *, most: int = 20) -> None:
        self._most = most
        self._connections = connections
        self._given_up = 0

    def remember(self) -> None:
        """One more was given up."""
        self._given_up += 1

    async def check(self) -> None:
        """Raise `IndexUnavailable` where too many sessions are left. The server is asked only where
        that many were given up since it said that there are fewer."""
        if self._given_up < self._most:
            return
        self._given_up = await self._connections.read(self._left)
        if self._given_up >= self._most:
            raise IndexUnavailable(
                f"{self._given_up} commits wait for the index database's synchronous standby, as "
                "many as may; nothing was done"
            )

    async def _left(self, connection: AsyncConnection) -> int:
        seconds = self._connections.answer_timeout_s
        asked = {"application_name": APPLICATION_NAME, "seconds": seconds}
        left: int = (await connection.execute(_LEFT, asked)).scalar_one()
        return left
