"""The newest commits of each table, kept between commits, so that winners need not be read again.

A window is taken by whoever holds the table's row lock, checked against the locked row, and given
back once what was added to it is committed. So it holds committed versions only, and never those
of another epoch, or of a database that may have lost some of them: it says what the index would,
from whichever instance the versions came.
"""

from collections import OrderedDict
from dataclasses import dataclass

from tidegate_protocol.conflict.window import CommitWindow
from tidegate_service.core.ports.records import TableHead, TableRecord
from tidegate_service.core.sharing.shares import Shares

COMMITS_A_TABLE = 20_000
ACTIONS_A_TABLE = 100_000
ACTIONS = 500_000
TABLES = 20_000
"""Bounds of what is kept; an action is about a kilobyte in memory, and counted once more for each
kilobyte that it has. The tables that were not committed to for longest make room."""
MEMORY_BYTES = 1792 * 1024 * 1024
"""What proposals that are checked ahead of their table's lock may take at a time: each counts as
`CommitLimits.winner_bytes`, since a page may be one commit. So there are three of them, and two of
one caller, who may have three times what is left."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """`timestamp` is the head's, where the window reached it."""

    database: str
    epoch: int
    timestamp: int | None
    window: CommitWindow


class WindowCache:
    """Those of one instance, of one event loop."""

    def __init__(
        self,
        *,
        commits_a_table: int = COMMITS_A_TABLE,
        actions: int = ACTIONS,
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        self.memory = Shares(memory_bytes, "bytes of commits that are read again")
        self._commits_a_table = commits_a_table
        self._actions = actions
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._weight = 0

    def take(self, table: TableRecord, database: str) -> CommitWindow:
        """The table's window for its lock's holder, whose alone it is until given back; it may
        end before the head. A new one, which begins at the head, where nothing is kept that the
        locked row bears out."""
        kept = self._kept.pop(table.id, None)
        if kept is not None:
            self._weight -= kept.window.weight
            if kept.database == database and _holds(kept, table):
                return kept.window
        return CommitWindow(after=table.latest_version)

    def offer(self, table: TableHead, window: CommitWindow, database: str) -> None:
        """Keep a window of committed versions that were read without the lock, unless what is kept
        reaches back as far. Whoever takes it checks it against the locked row, like any other."""
        kept = self._kept.get(table.id)
        is_of_now = kept is not None and (kept.database, kept.epoch) == (database, table.epoch)
        if kept is None or not is_of_now or kept.window.after > window.after:
            self.give(table, window, database)

    def give(self, table: TableHead, window: CommitWindow, database: str) -> None:
        """Keep a window, all of which is committed."""
        window.trim(commits=self._commits_a_table, weight=ACTIONS_A_TABLE)
        before = self._kept.pop(table.id, None)
        if before is not None:
            self._weight -= before.window.weight
        timestamp = table.latest_timestamp if window.through == table.latest_version else None
        self._kept[table.id] = _Kept(database, table.epoch, timestamp, window)
        self._weight += window.weight
        while (self._weight > self._actions and len(self._kept) > 1) or len(self._kept) > TABLES:
            _, oldest = self._kept.popitem(last=False)
            self._weight -= oldest.window.weight


def _holds(kept: _Kept, table: TableRecord) -> bool:
    """Whether the row's log still goes on from what is kept."""
    if kept.epoch != table.epoch or kept.window.through > table.latest_version:
        return False
    # The same head, unless a running server was given an older state. One that the log has outgrown
    # since is believed: such a server gets its table looked at first (`core.instance.head_checks`).
    at_head = kept.window.through == table.latest_version
    return not at_head or kept.timestamp == table.latest_timestamp
