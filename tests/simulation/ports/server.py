"""The database in memory: sessions, the locks of rows and places, and what is committed.

As Postgres: what a session wrote is seen by others once it commits, all at once; who waits for a
lock gets it in turn and sees what was committed meanwhile; a session that is idle within a
transaction for too long is ended, and so are all when the database goes away. A snapshot of all
that is committed is a backup, and `restore` goes back to it.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tests.simulation.ports.kept import Kept
from tests.simulation.ports.network import Answering, Network
from tests.simulation.ports.rows import Rows
from tidegate_protocol.base.problems import Code
from tidegate_service.core.errors import IndexUnavailable, Refused, TableExists
from tidegate_service.core.ports.records import NewTable, TableRecord
from tidegate_service.core.tables.place_rights import location_in_use

LOCK_TIMEOUT_S = 10.0
IDLE_S = 10.0
PATIENT_IDLE_S = 120.0
"""Of `CommitSection.take_time`."""
SILENT_S = 30.0
"""Of a session that holds a lock and is silent in the middle of what it sends: by then the sweeper
of an instance ends it, or the server itself, which takes a minute."""
LONGEST_LOCATION = 2_700
"""What an entry of an index of Postgres holds."""


@dataclass(slots=True)
class _Lock:
    holder: "Session"
    waiting: deque[tuple["Session", Callable[[], None]]] = field(default_factory=deque)


Backup = tuple[dict[str, Rows], dict[str, Kept]]


class Server:
    """One database."""

    def __init__(self, clock_ms: Callable[[], int]) -> None:
        self.tables: dict[str, Rows] = {}
        self.kept: dict[str, Kept] = {}
        """Of tables that were forgotten, by their ids."""
        self._runs = 0
        self.late = 0
        """How many COMMITs are on their way that nobody waits for any more."""
        self.clock_ms = clock_ms
        self._locks: dict[str, _Lock] = {}
        self._creating: list[tuple[Session, NewTable]] = []
        self._waiting_to_create: deque[Callable[[], bool]] = deque()
        self._sessions: list[Session] = []
        self.longest_hold_s = 0.0
        """How long a row's lock was held at most."""

    @property
    def database(self) -> str:
        """Its name, and that of the run of its server."""
        return f"run {self._runs}"

    def session(self, network: Network) -> "Session":
        session = Session(self, network)
        self._sessions.append(session)
        return session

    def find(self, ref: str) -> Rows | None:
        rows = self.tables.get(ref.lower() if ref.isascii() else ref)
        if rows is not None:
            return rows
        name = ascii_lower(ref)
        return next((r for r in self.tables.values() if ascii_lower(r.record.name) == name), None)

    @property
    def waiting(self) -> int:
        """How many sessions wait for a lock."""
        return sum(len(lock.waiting) for lock in self._locks.values()) + len(
            self._waiting_to_create
        )

    @property
    def sessions(self) -> int:
        """How many are open."""
        return len(self._sessions)

    def is_locked(self, table_id: str) -> bool:
        return table_id in self._locks

    def lock(self, session: "Session", table_id: str, granted: Callable[[], None]) -> None:
        """Call `granted` once the session holds the table's row."""
        lock = self._locks.get(table_id)
        if lock is None:
            self._locks[table_id] = _Lock(session)
            session.granted(table_id)
            granted()
        else:
            lock.waiting.append((session, granted))

    def give_up(self, session: "Session", table_id: str) -> bool:
        """Whether the session waited for the lock, and does not any more."""
        lock = self._locks.get(table_id)
        if lock is None:
            return False
        before = len(lock.waiting)
        lock.waiting = deque(one for one in lock.waiting if one[0] is not session)
        return len(lock.waiting) < before

    def unlock(self, table_ids: Iterable[str]) -> None:
        for table_id in table_ids:
            lock = self._locks[table_id]
            while lock.waiting:
                session, granted = lock.waiting.popleft()
                if not session.is_over:
                    lock.holder = session
                    session.granted(table_id)
                    granted()
                    break
            else:
                del self._locks[table_id]

    def claim(self, session: "Session", table: NewTable, answer: Answering) -> None:
        """Hold a name and a place until the session ends; who comes second waits for the first."""

        def attempt() -> bool:
            if session.is_over:
                return True
            for other, taken in self._creating:
                if other is not session and overlap(taken, table):
                    return False
            try:
                self._check_free(table)
            except Refused as error:
                answer(None, error)
            else:
                self._creating.append((session, table))
                answer(None, None)
            return True

        if not attempt():
            self._waiting_to_create.append(attempt)

    def _check_free(self, table: NewTable) -> None:
        if len(table.location) > LONGEST_LOCATION:
            raise Refused("a value is one that the index cannot hold", code=Code.INVALID_REQUEST)
        records = [rows.record for rows in self.tables.values()]
        name = ascii_lower(table.name)
        for record in records:
            if ascii_lower(record.name) == name:
                raise TableExists(f"a table named {record.name} exists already")
        for record in records:
            if places_overlap(record.location, table.location):
                raise location_in_use(table.location)

    def ended(self, session: "Session") -> None:
        self._sessions.remove(session)
        locks, session.locks = session.locks, []
        self._creating = [one for one in self._creating if one[0] is not session]
        self.unlock(locks)
        waiting, self._waiting_to_create = self._waiting_to_create, deque()
        self._waiting_to_create.extend(one for one in waiting if not one())

    def end_all(self, *, restarts: bool = True) -> None:
        """As when the database is killed, or only its sessions are: what is committed is there
        again at once."""
        for session in list(self._sessions):
            session.end()
        self._runs += restarts

    def end_some(self, which: Callable[["Session"], bool]) -> None:
        for session in [one for one in self._sessions if which(one)]:
            session.end()

    def backup(self) -> Backup:
        return dict(self.tables), dict(self.kept)

    def restore(self, backup: Backup) -> None:
        self.end_all()
        tables, kept = backup
        self.tables, self.kept = dict(tables), dict(kept)

    def records(self) -> list[TableRecord]:
        return [rows.record for rows in self.tables.values()]


class Session:
    """One connection within one transaction. `changed` are the rows as it has them; None for those
    that it deleted."""

    __slots__ = (
        "_idle_s",
        "_kept",
        "_last",
        "_locked_at",
        "_network",
        "_server",
        "changed",
        "database",
        "if_ended",
        "is_asking",
        "is_over",
        "locks",
    )

    def __init__(self, server: Server, network: Network) -> None:
        self._server = server
        self._network = network
        self.locks: list[str] = []
        self.changed: dict[str, Rows | None] = {}
        self.database = server.database
        self._kept: dict[str, Kept | None] = {}
        self.is_over = False
        self.is_asking = True
        self.if_ended: Callable[[], None] | None = None
        """Called where it is ended while somebody waits for it to be given a lock."""
        self._idle_s = IDLE_S
        self._last = self._locked_at = network.now()
        network.after(IDLE_S, self._look)

    @property
    def network(self) -> Network:
        return self._network

    def granted(self, table_id: str) -> None:
        self.if_ended = None
        self.locks.append(table_id)
        self._locked_at = self._network.now()

    def rows(self, table_id: str) -> Rows | None:
        """As this session sees the table."""
        if table_id in self.changed:
            return self.changed[table_id]
        return self._server.tables.get(table_id)

    def changing(self, table_id: str) -> Rows:
        """The rows to be changed by it."""
        rows = self.changed.get(table_id)
        if rows is None:
            rows = self.changed[table_id] = self._server.tables[table_id].copy()
        return rows

    @property
    def kept(self) -> dict[str, Kept]:
        """As this session sees it."""
        seen = {**self._server.kept, **self._kept}
        return {table_id: one for table_id, one in seen.items() if one is not None}

    def kept_at(self, location: str) -> list[Kept]:
        return [one for one in self.kept.values() if one.table.location == location]

    def keep(self, one: Kept) -> None:
        self._kept[one.table.id] = one

    def take_kept(self, table_id: str) -> Kept:
        found = self.kept[table_id]
        self._kept[table_id] = None
        return found

    def check(self) -> None:
        if self.is_over:
            raise IndexUnavailable("the index database ended the session")

    def asked(self) -> None:
        """A statement of it was answered; it is idle from now on."""
        self.is_asking = False
        self._last = self._network.now()

    def take_time(self) -> None:
        self._idle_s = PATIENT_IDLE_S

    def commit(self) -> None:
        """What it changed is what all see, and it holds nothing any more."""
        tables = self._server.tables
        for table_id, rows in self.changed.items():
            if rows is None:
                tables.pop(table_id, None)
            else:
                tables[table_id] = rows
        self._server.kept = self.kept
        self.end()

    def commit_later(self, after_s: float) -> None:
        """Its COMMIT is on its way, and nobody waits for it."""
        self._server.late += 1

        def arrives() -> None:
            self._server.late -= 1
            if not self.is_over:
                self.commit()

        self._network.after(after_s, arrives)

    def end(self) -> None:
        """Whatever it did not commit has never been."""
        if not self.is_over:
            self.is_over = True
            if self.locks:
                held_s = self._network.now() - self._locked_at
                self._server.longest_hold_s = max(self._server.longest_hold_s, held_s)
            self.changed = {}
            self._server.ended(self)
            if self.if_ended is not None:
                self.if_ended()

    def _look(self) -> None:
        if self.is_over:
            return
        now = self._network.now()
        left = self._last + self._idle_s - now
        if self.is_asking and self.locks and now - max(self._locked_at, self._last) >= SILENT_S:
            self.end()
        elif self.is_asking:
            self._network.after(IDLE_S, self._look)
        elif left <= 0:
            self.end()
        else:
            self._network.after(left, self._look)


def ascii_lower(name: str) -> str:
    """As Postgres folds names in the collation "C"."""
    return "".join(c.lower() if c.isascii() else c for c in name)


def places_overlap(one: str, other: str) -> bool:
    """Local folders that differ in the case of ASCII letters are one."""
    if one.startswith("file:"):
        one, other = ascii_lower(one), ascii_lower(other)
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")


def overlap(one: NewTable, other: NewTable) -> bool:
    same_name = ascii_lower(one.name) == ascii_lower(other.name)
    return same_name or places_overlap(one.location, other.location)
