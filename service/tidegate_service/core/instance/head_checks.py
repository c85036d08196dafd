"""Heads of catalog-managed tables, as this instance last saw them committed
(`core.catalog_managed.set_back`).
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from tidegate_service.core.instance.log_checks import QUIET_MS, TABLES
from tidegate_service.core.instance.replicated_heads import ReplicatedHeads
from tidegate_service.core.ports.records import TableHead

DUE_S = QUIET_MS / 1000 - 0.5
"""Shorter than the quiet time by what a commit may take."""


@dataclass(slots=True)
class Head:
    """`version` and `timestamp` are of the last head that this instance knows to have been
    committed, with a synchronous standby that has it, where there is one; -1 where it knows none.
    The table was looked at in `database`, with `epoch`: `checked_ms` is the clock of that database
    then, `seen_s` this instance's `monotonic_s` when it was last sure of the table, by a check
    or in a commit's section."""

    database: str
    epoch: int
    version: int
    timestamp: int
    checked_ms: int
    seen_s: float

    def goes_on(self, table: TableHead, *, database: str) -> bool:
        """Whether the row has this head, or one after it, in the same database."""
        if (database, table.epoch) != (self.database, self.epoch):
            return False
        if table.latest_version == self.version:
            return table.latest_timestamp == self.timestamp
        return table.latest_version > self.version

    def is_due(self, now_s: float) -> bool:
        """Whether the table has to be looked at again, as far as can be told without its row."""
        return now_s - self.seen_s >= DUE_S


class HeadChecks:
    """Those of one instance, of one event loop."""

    def __init__(self) -> None:
        self.replicated = ReplicatedHeads()
        self._known: OrderedDict[str, Head] = OrderedDict()
        self._database: str | None = None

    def known(self, table_id: str) -> Head | None:
        """The head that this instance knows; None of a table that was not looked at."""
        return self._known.get(table_id)

    def may_go_on(self, table: TableHead, *, database: str) -> bool:
        """Whether nothing that this instance knows says that the row has lost something."""
        known = self._known.get(table.id)
        return known is None or known.goes_on(table, database=database)

    def is_sure(self, table: TableHead, now_ms: int, *, database: str) -> bool:
        """Whether the row goes on from what this instance knows, so that the table need not be
        looked at: the same database, a head that did not go back, and no quiet time."""
        known = self._known.get(table.id)
        if known is None or not known.goes_on(table, database=database):
            return False
        # A head that is ahead of the clock is one of a table that takes more than one commit in a
        # millisecond for long; it is looked at once in a quiet time.
        is_young = abs(now_ms - table.latest_timestamp) < QUIET_MS
        return is_young or 0 <= now_ms - known.checked_ms < QUIET_MS

    def checked(self, table: TableHead, now_ms: int, now_s: float, *, database: str) -> None:
        """The table was looked at, and nothing of it is lost.

        The row's head may be one that a synchronous standby never gets. Where it takes over, the
        table has lost nothing by that, so only a head that is known to be there is one to miss.
        """
        version = timestamp = -1
        known = self._known.get(table.id)
        if self.replicated.has(table, database=database):
            version, timestamp = table.latest_version, table.latest_timestamp
        elif known is not None and known.epoch == table.epoch:
            version, timestamp = known.version, known.timestamp
        self._known[table.id] = Head(database, table.epoch, version, timestamp, now_ms, now_s)
        self._known.move_to_end(table.id)
        while len(self._known) > TABLES:
            self._known.popitem(last=False)

    def seen(self, table: TableHead, now_s: float, *, database: str) -> None:
        """A section was sure of the table, and was left without a COMMIT."""
        known = self._known.get(table.id)
        if known is not None and known.database == database and known.epoch == table.epoch:
            known.seen_s = now_s
            # Those make room that nobody has committed to for longest.
            self._known.move_to_end(table.id)

    def saved(self, table: TableHead, now_s: float, *, database: str) -> None:
        """A section's COMMIT was answered, behind the table's head."""
        self.seen(table, now_s, database=database)
        known = self._known.get(table.id)
        if known is not None and known.database == database and known.epoch == table.epoch:
            known.version, known.timestamp = table.latest_version, table.latest_timestamp

    def forget(self, table_id: str) -> None:
        """Nothing is known of the table any more."""
        self._known.pop(table_id, None)
        self.replicated.forget(table_id)

    def left_behind(self, database: str) -> Sequence[str]:
        """The tables whose heads were seen in another database, once for each that this instance
        comes to."""
        if self._database == database:
            return ()
        self._database = database
        return [table_id for table_id, head in self._known.items() if head.database != database]
