"""The index's calls about tables that were forgotten."""

from tidegate_service.core.access.roles import Caller
from tidegate_service.core.ports.records import ForgottenTable
from tidegate_service.index.limits import IndexLimits
from tidegate_service.index.postgres.connections import Connections
from tidegate_service.index.reading.reads import table_id_of
from tidegate_service.index.tables import forgotten
from tidegate_service.index.tables.long_transactions import in_statements


class ForgottenCalls:
    """As the methods of `core.ports.index.Index` of the same names."""

    _connections: Connections
    _limits: IndexLimits

    async def forgotten_tables(self, *, after: str | None, limit: int) -> list[ForgottenTable]:
        last = None if after is None else table_id_of(after)
        return await self._connections.read(lambda c: forgotten.page(c, after=last, limit=limit))

    async def delete_forgotten(self, table_id: str, *, by: Caller) -> bool:
        identity = table_id_of(table_id)
        if identity is None:
            return False
        return await in_statements(
            self._connections,
            lambda statement: forgotten.delete_forgotten(
                statement, identity, by=by, limits=self._limits
            ),
        )
