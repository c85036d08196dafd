"""Heads of catalog-managed tables that a synchronous standby, where there is one, is known to have.

A COMMIT that was answered behind a head says so, and so does the standby where it was asked
(`core.ports.told`).
"""

from collections import OrderedDict
from dataclasses import dataclass

from tidegate_service.core.instance.log_checks import TABLES
from tidegate_service.core.ports.records import TableHead


@dataclass(frozen=True, slots=True)
class _Head:
    database: str
    epoch: int
    version: int
    timestamp: int


class ReplicatedHeads:
    """Those of one instance, of one event loop; implements `core.ports.told.HeadsOnStandby`.
    Of at most `tables`."""

    def __init__(self, *, tables: int = TABLES) -> None:
        self._tables = tables
        self._known: OrderedDict[str, _Head] = OrderedDict()

    def has(self, table: TableHead, *, database: str) -> bool:
        """Whether the row's head is on the standby: it is the one that is known, or one before."""
        known = self._known.get(table.id)
        if known is None or (known.database, known.epoch) != (database, table.epoch):
            return False
        if known.version == table.latest_version:
            return known.timestamp == table.latest_timestamp
        return known.version > table.latest_version

    def remember(self, table: TableHead, *, database: str) -> None:
        """The row's head is on the standby."""
        if not self.has(table, database=database):
            self._known[table.id] = _Head(
                database, table.epoch, table.latest_version, table.latest_timestamp
            )
        self._known.move_to_end(table.id)
        while len(self._known) > self._tables:
            self._known.popitem(last=False)

    def forget(self, table_id: str) -> None:
        """Nothing is known of the table any more."""
        self._known.pop(table_id, None)
