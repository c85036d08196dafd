"""When an instance last found the heads of plain tables in their logs
(`core.maintenance.truncation`).
"""

from collections import OrderedDict
from dataclasses import dataclass

from tidegate_service.core.ports.records import TableHead

QUIET_MS = 10_000
"""How long after a check a log is taken to be as it was found, and commits need none. Whatever
others delete or put in its place meanwhile is found by the next check."""
TABLES = 10_000
"""So many are remembered; those that were looked at longest ago make room."""


@dataclass(frozen=True, slots=True)
class _Check:
    """What the head was that was found, in which database, and its clock before."""

    database: str
    epoch: int
    version: int
    at_ms: int


class LogChecks:
    """Those of one instance, of one event loop. After a check, commits need none for `quiet_ms`."""

    def __init__(self, *, tables: int = TABLES, quiet_ms: int = QUIET_MS) -> None:
        self.quiet_ms = quiet_ms
        self._tables = tables
        self._made: OrderedDict[str, _Check] = OrderedDict()

    def last(self, table: TableHead, *, database: str) -> int | None:
        """The head that the last check found, however long ago; None where nothing is known of it.

        The file of that version was there before all that was committed since. So a log that has
        another file of that version is not the log that these commits were meant for, although
        the files of later versions, which this service put there, are in it.
        """
        check = self._made.get(table.id)
        if check is None or (check.database, check.epoch) != (database, table.epoch):
            return None
        return check.version if check.version <= table.latest_version else None

    def spare(self, table: TableHead, now_ms: int, *, database: str) -> bool:
        """Whether the head is one that came after a check, less than `quiet_ms` ago.

        A head that was itself checked is not spared: it says nothing of how old those are that
        may lie behind it, unread, and be cleaned up with it. What came since was put there, or
        read to the log's end, after the check, so that whatever is behind that is as young.
        """
        check = self._made.get(table.id)
        return (
            check is not None
            and check.database == database
            and check.epoch == table.epoch
            and check.version < table.latest_version
            and 0 <= now_ms - check.at_ms < self.quiet_ms
        )

    def remember(self, table: TableHead, at_ms: int, *, database: str) -> None:
        """The head was found where it belongs. The check of a later one stays."""
        made, head = self._made.get(table.id), (table.epoch, table.latest_version)
        if made is not None and made.database == database and (made.epoch, made.version) > head:
            return
        self._made[table.id] = _Check(database, table.epoch, table.latest_version, at_ms)
        self._made.move_to_end(table.id)
        while len(self._made) > self._tables:
            self._made.popitem(last=False)
