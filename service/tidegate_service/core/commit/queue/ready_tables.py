"""The tables that somebody waits for and no group runs for, by the callers who wait for them.

Whoever may begin no group costs a pass nothing, however many tables wait for it: its tables are
looked at once there is a place for one of them.
"""

import itertools
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field

from tidegate_service.core.commit.queue.table_queue import TableQueue, is_large
from tidegate_service.core.commit.queue.waiting_proposal import WaitingProposal

_NO_STORE = ""
"""Large proposals to catalog-managed tables are counted as if they waited for this one store."""


@dataclass(frozen=True, slots=True)
class Need:
    """What a group needs a place of. `own` is set for a group of its own. `store` is the one that
    it waits for, or that the holder of its table's lock does."""

    own: bool
    store: str | None = None


_SHARED, _ALONE, _LARGE = Need(False), Need(True), Need(True, _NO_STORE)


@dataclass(slots=True)
class _Table:
    """`number` counts from the table that became ready first. `needs` are of the first proposals of
    the callers."""

    number: int
    needs: dict[str | None, Need] = field(default_factory=dict)


class ReadyTables:
    """Those of one queue. `store_of` says of a location which store it is in."""

    def __init__(self, store_of: Callable[[str], str]) -> None:
        self._store_of = store_of
        self._tables: dict[str, _Table] = {}
        self._of: dict[str | None, dict[Need, dict[str, int]]] = {}
        self._numbers = itertools.count()
        # The number of the beginning of each caller's last table, counted over all callers.
        self._begun: dict[str | None, int] = {}
        self._beginnings = itertools.count(1)

    def __len__(self) -> int:
        return len(self._tables)

    def put(self, table_id: str, queue: TableQueue) -> bool:
        """The table is ready, as its line is now. Returns whether a group may begin that could not
        before."""
        table = self._tables.get(table_id)
        if table is None:
            table = self._tables[table_id] = _Table(next(self._numbers))
        line = queue.waiting
        needs = {who: self.need(queue, line.first_of(who)) for who in line.callers}
        # Their order, too, says who may begin.
        if list(needs.items()) == list(table.needs.items()):
            return False
        self._leave(table_id, table)
        table.needs = needs
        for who, need in needs.items():
            self._of.setdefault(who, {}).setdefault(need, {})[table_id] = table.number
        return True

    def discard(self, table_id: str) -> None:
        """The table is not ready, or not any more."""
        table = self._tables.pop(table_id, None)
        if table is not None:
            self._leave(table_id, table)

    def begun(self, who: str | None) -> None:
        """A table has begun in this caller's turn."""
        self._begun[who] = next(self._beginnings)

    def in_turn(
        self, may_begin: Callable[[str | None, Need], bool]
    ) -> Iterator[tuple[str, str | None]]:
        """The tables of callers who may begin a group of what these need, each with the caller
        whose turn it is: one table of each caller, then the next of each. The caller whose turn was
        longest ago comes first."""
        # Whose tables are all busy comes back before long, and not as one who had no turn yet.
        longest = min((self._begun.get(who, 0) for who in self._of), default=0)
        self._begun = {who: turn for who, turn in self._begun.items() if turn >= longest}
        callers = sorted(self._of, key=lambda who: self._begun.get(who, 0))
        turns = {who: _Turns(who, self._of[who]) for who in callers}
        while turns:
            for who in list(turns):
                table_id = turns[who].next(self._tables, may_begin)
                if table_id is None:
                    del turns[who]
                else:
                    yield table_id, who

    def need(self, queue: TableQueue, first: WaitingProposal) -> Need:
        """What a group of the table needs that begins with this proposal."""
        if not queue.needs_own(first):
            return _SHARED
        if first.table.kind.shares_groups and not (queue.is_due or queue.own):
            return _LARGE if is_large(first) else _ALONE
        if queue.store is None:
            queue.store = self._store_of(first.table.location)
        return Need(True, queue.store)

    def _leave(self, table_id: str, table: _Table) -> None:
        for who, need in table.needs.items():
            of_caller = self._of[who]
            del of_caller[need][table_id]
            if not of_caller[need]:
                del of_caller[need]
            if not of_caller:
                del self._of[who]


class _Turns:
    """One caller's tables in one pass, in the order in which they became ready."""

    def __init__(self, who: str | None, tables: dict[Need, dict[str, int]]) -> None:
        self._who = who
        self._tables = tables
        # Of each need that was looked at: its tables that are left, the next one last.
        self._left: dict[Need, list[tuple[int, str]]] = {}
        self._needs = list(tables)

    def next(
        self, ready: Container[str], may_begin: Callable[[str | None, Need], bool]
    ) -> str | None:
        """The caller's next table that is ready and needs what the caller may begin."""
        found: list[tuple[int, str]] | None = None
        for need in list(self._needs):
            if not may_begin(self._who, need):
                # Nor later in this pass: no place becomes free meanwhile.
                self._needs.remove(need)
                continue
            if need not in self._left:
                tables = self._tables.get(need, {})
                self._left[need] = sorted(((n, id_) for id_, n in tables.items()), reverse=True)
            left = self._left[need]
            while left and left[-1][1] not in ready:
                left.pop()
            if not left:
                self._needs.remove(need)
            elif found is None or left[-1] < found[-1]:
                found = left
        return None if found is None else found.pop()[1]
