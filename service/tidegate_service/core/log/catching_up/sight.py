"""What was seen of a table's log without the lock of the table's row.

A store may take seconds to answer, and whoever holds the row keeps all other commits to the table
waiting. So a commit section asks a `Sight`. `SeenBefore` answers from what was seen before the row
was locked. Where it cannot, it raises `Behind`: the section is left, `catch_up.read_on` asks the
store without the lock, and the section is begun again.

An answer counts only while the row is where it was before the store was asked: in the same
database, with the same epoch, at the same version. So the store was asked after every version was
in the log that the row says to be there. What others put into the log since is found by a PUT or by
the next check. The same is true of what they put there right after a check under the lock.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NoReturn, Protocol, TypeVar, cast

from tidegate_protocol.log.segment import BrokenLog
from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.core.ports.index import CommitSection
from tidegate_service.core.ports.records import Glance, TableHead
from tidegate_service.core.ports.store.storage import Log, UnreadableFile

GOOD_FOR_MS = 30_000
"""An answer is used so long after the store had time to give it, by the database's clock."""

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Between = Callable[[], Awaitable[None]]
Remedy = Callable[[], Awaitable[None]]


class Behind(Exception):
    """A section needs more of the log than was seen without the row's lock. The section is saved or
    left, and is begun again after `catch_up.read_on`."""


class Question(Protocol[T_co]):
    """What can be asked of a log. Equal questions have one answer."""

    async def ask(self, log: Log, between: Between | None) -> T_co:
        """The log's answer. `between`, if given, is awaited between two steps, so that a section
        can tell the database that it goes on. Raises `StorageUnavailable`, `BrokenLog` and
        `UnreadableFile`."""
        ...

    def at(self, table: TableHead) -> "Question[T_co]":
        """The same question where the table's row is now."""
        ...


class Sight(Protocol):
    """What answers a section's questions about its table's log."""

    async def see(self, section: CommitSection, question: Question[T]) -> T:
        """The answer. Raises what `Question.ask` does, and `Behind`."""
        ...


class SeenNow:
    """Asks the store while the section holds the row."""

    def __init__(self, log: Log) -> None:
        self._log = log

    async def see(self, section: CommitSection, question: Question[T]) -> T:
        await section.take_time()
        return await question.ask(self._log, section.take_time)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a table's row is."""

    database: str
    epoch: int
    version: int

    @classmethod
    def of(cls, table: TableHead, database: str) -> "_Place":
        return cls(database, table.epoch, table.published_version)


@dataclass(frozen=True, slots=True)
class _Answer:
    """What the store said, when it was asked after `since_ms`, with the row where it was then; good
    until `until_ms`."""

    place: _Place
    since_ms: int
    until_ms: int
    answer: object


class SeenBefore:
    """What one request has seen of one table's log."""

    def __init__(self) -> None:
        self._seen: dict[Question[object], _Answer] = {}
        self._wanted: list[Question[object]] = []
        self._times_asked = 0
        self._end: _Place | None = None
        self._remedy: Remedy | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing was seen yet."""
        return not self._seen

    @property
    def since_ms(self) -> int:
        """When the store was asked first, by the database's clock."""
        return min(seen.since_ms for seen in self._seen.values())

    @property
    def is_asked(self) -> bool:
        """Whether a section was left for an answer."""
        return bool(self._wanted)

    @property
    def times_asked(self) -> int:
        """How often the store was asked."""
        return self._times_asked

    def without_end(self) -> "SeenBefore":
        """What was seen, for a request that came after the log was read to its end."""
        twin = SeenBefore()
        twin._seen = dict(self._seen)
        return twin

    async def see(self, section: CommitSection, question: Question[T]) -> T:
        seen = self._seen.get(question)
        place = _Place.of(section.table, section.database)
        if seen is not None and seen.place == place and section.now_ms < seen.until_ms:
            if isinstance(seen.answer, Exception):
                raise seen.answer
            return cast(T, seen.answer)
        self._wanted.append(question)
        raise Behind

    def seen_of(self, section: CommitSection, question: Question[T]) -> T | None:
        """What was answered to such a question last, if the row was where it is or has only gone on
        since. On a busy table it never is where it was. Raises nothing that was answered."""
        now = _Place.of(section.table, section.database)
        for asked, seen in reversed(self._seen.items()):
            if (
                type(asked) is type(question)
                and section.now_ms < seen.until_ms
                and (seen.place.database, seen.place.epoch) == (now.database, now.epoch)
                and seen.place.version <= now.version
                and not isinstance(seen.answer, Exception)
            ):
                return cast(T, seen.answer)
        return None

    def leave_for(self, remedy: Remedy) -> NoReturn:
        """Leave the section for work that takes too long to be done while it holds the row, such as
        making the index anew."""
        self._remedy = remedy
        raise Behind

    def take_remedy(self) -> Remedy | None:
        """The work that a section was left for. It is handed out once."""
        remedy, self._remedy = self._remedy, None
        return remedy

    async def ask(self, glance: Glance, log: Log, *, within_s: float) -> None:
        """Ask the store what sections wanted to know. That the store does not answer is an answer,
        too. `glance` was taken before."""
        wanted, self._wanted = self._wanted, []
        self._times_asked += 1
        # The table may have gone on since a section asked.
        for question in [asked.at(glance.table) for asked in wanted]:
            try:
                async with asyncio.timeout(within_s):
                    answer: object = await question.ask(log, None)
            except (StorageUnavailable, BrokenLog, UnreadableFile) as error:
                answer = error
            except TimeoutError:
                answer = StorageUnavailable(
                    "the object store took longer than a request may to show this table's log"
                )
            self.remember(glance, question, answer, within_s=within_s)

    def remember(
        self, glance: Glance, question: Question[object], answer: object, *, within_s: float = 0.0
    ) -> None:
        """The store was asked after `glance` was taken, and answered within so many seconds."""
        place = _Place.of(glance.table, glance.database)
        until_ms = glance.now_ms + round(1000 * within_s) + GOOD_FOR_MS
        self._seen = {
            other: seen
            for other, seen in self._seen.items()
            if seen.place == place or type(other) is not type(question)
        }
        self._seen[question] = _Answer(place, glance.now_ms, until_ms, answer)

    def ends(self, table: TableHead, database: str) -> None:
        """A plain table's log was read into the index to its end, which was seen at this head."""
        self._end = _Place.of(table, database)

    def has_end(self, at: CommitSection | Glance) -> bool:
        """Whether a plain table's log was read in to the end that it had when the request came, or
        later. Versions that were committed since lie behind that end."""
        now, end = _Place.of(at.table, at.database), self._end
        return (
            end is not None
            and (end.database, end.epoch) == (now.database, now.epoch)
            and end.version <= now.version
        )
