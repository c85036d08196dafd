"""Heads of catalog-managed tables, as this instance last saw them committed
(`core.catalog_managed.set_back`).
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from tidegate_service.core.instance.log_looks import QUIET_MS, TABLES
from tidegate_service.core.ports.records import TableRecord

DUE_S = QUIET_MS / 1000 - 0.5
"""Shorter than the quiet time by what a commit may take."""


@dataclass(slots=True)
class Head:
    """`database`, `epoch`, `version` and `timestamp` are of a head that was committed; `looked_ms`
    is the clock of that database when the table was last looked at, `seen_s` this instance's
    `monotonic_s` when it last saw the head, by a look or by a commit. `replicated` is the last
    version behind which a COMMIT of this instance was answered there: a synchronous standby has
    it."""

    database: str
    epoch: int
    version: int
    timestamp: int
    looked_ms: int
    seen_s: float
    replicated: int = -1

    def goes_on(self, table: TableRecord, *, database: str) -> bool:
        """Whether the row has this head, or one after it, in the same database."""
        if (database, table.epoch) != (self.database, self.epoch):
            return False
        if table.latest_version == self.version:
            return table.latest_timestamp == self.timestamp
        return table.latest_version > self.version

    def is_due(self, now_s: float) -> bool:
        """Whether the table has to be looked at again, as far as can be told without its row."""
        return now_s - self.seen_s >= DUE_S


class HeadLooks:
    """Those of one instance, of one event loop."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Head] = OrderedDict()
        self._database: str | None = None

    def known(self, table_id: str) -> Head | None:
        """The head that this instance knows; None of a table that was not looked at."""
        return self._known.get(table_id)

    def may_go_on(self, table: TableRecord, *, database: str) -> bool:
        """Whether nothing that this instance knows says that the row has lost something."""
        known = self._known.get(table.id)
        return known is None or known.goes_on(table, database=database)

    def is_sure(self, table: TableRecord, now_ms: int, *, database: str) -> bool:
        """Whether the row goes on from what this instance knows, so that the table need not be
        looked at: the same database, a head that did not go back, and no quiet time."""
        known = self._known.get(table.id)
        if known is None or not known.goes_on(table, database=database):
            return False
        # A head that is ahead of the clock is one of a table that takes more than one commit in a
        # millisecond for long; it is looked at once in a quiet time.
        is_young = abs(now_ms - table.latest_timestamp) < QUIET_MS
        return is_young or 0 <= now_ms - known.looked_ms < QUIET_MS

    def looked(self, table: TableRecord, now_ms: int, now_s: float, *, database: str) -> None:
        """The table was looked at, and nothing of it is lost."""
        self._known[table.id] = Head(
            database, table.epoch, table.latest_version, table.latest_timestamp, now_ms, now_s
        )
        self._known.move_to_end(table.id)
        while len(self._known) > TABLES:
            self._known.popitem(last=False)

    def seen(self, table: TableRecord, now_s: float, *, database: str) -> None:
        """The table's head is committed, in a section that was sure of it."""
        known = self._known.get(table.id)
        if known is not None and known.database == database and known.epoch == table.epoch:
            known.version, known.timestamp = table.latest_version, table.latest_timestamp
            known.seen_s = now_s

    def saved(self, table: TableRecord, now_s: float, *, database: str) -> None:
        """The same, and the section's own COMMIT was answered."""
        self.seen(table, now_s, database=database)
        known = self._known.get(table.id)
        if known is not None and known.goes_on(table, database=database):
            known.replicated = table.latest_version

    def is_replicated(self, table: TableRecord, *, database: str) -> bool:
        """Whether a synchronous standby is known to have the row's head."""
        known = self._known.get(table.id)
        if known is None or not known.goes_on(table, database=database):
            return False
        return known.replicated == table.latest_version

    def forget(self, table_id: str) -> None:
        """Nothing is known of the table any more."""
        self._known.pop(table_id, None)

    def left_behind(self, database: str) -> Sequence[str]:
        """The tables whose heads were seen in another database, once for each that this instance
        comes to."""
        if self._database == database:
            return ()
        self._database = database
        return [table_id for table_id, head in self._known.items() if head.database != database]
