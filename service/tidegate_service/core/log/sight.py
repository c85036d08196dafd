"""What was seen of a table's log without the lock of the table's row.

A store may take seconds to answer, and whoever holds the row keeps all other commits to the table
waiting. So a commit section asks a `Sight`. `SeenBefore` answers from what was seen before the row
was locked. Where it cannot, it raises `Behind`: the section is left, `core.log.catch_up.read_on`
asks the store without the lock, and the section is begun again.

An answer counts only while the row is where it was before the store was asked: in the same
database, with the same epoch, at the same version. Whatever the row said to be in the log then was
there to be seen. What others put there since, a PUT or the next look finds, as what they put there
right after a look under the lock.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar, cast

from tidegate_protocol.log.segment import BrokenLog
from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.core.ports.index import CommitSection, Log, UnreadableFile
from tidegate_service.core.ports.records import Glance, TableRecord

GOOD_FOR_MS = 30_000
"""An answer is used so long after the store was asked at most, by the database's clock."""

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Between = Callable[[], Awaitable[None]]


class Behind(Exception):
    """A section needs more of the log than was seen without the row's lock. The section is saved or
    left, and is begun again after `core.log.catch_up.read_on`."""


class Question(Protocol[T_co]):
    """What can be asked of a log. Equal questions have one answer."""

    async def ask(self, log: Log, between: Between | None) -> T_co:
        """`between` is awaited between steps, where somebody has to hear that it goes on. Raises
        `StorageUnavailable`, `BrokenLog` and `UnreadableFile`."""
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
    def of(cls, table: TableRecord, database: str) -> "_Place":
        # Of a plain table, all that was committed is in the log.
        version = table.published_version if table.catalog_managed else table.latest_version
        return cls(database, table.epoch, version)


class SeenBefore:
    """What one request has seen of one table's log."""

    def __init__(self) -> None:
        self._place: _Place | None = None
        self._seen: dict[Question[object], tuple[int, object]] = {}
        self._wanted: list[Question[object]] = []
        self._asked: set[Question[object]] = set()
        self._end: _Place | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing was seen yet."""
        return not self._seen

    @property
    def since_ms(self) -> int:
        """When the store was asked first, by the database's clock."""
        return min(seen_ms for seen_ms, _ in self._seen.values())

    @property
    def is_asked(self) -> bool:
        """Whether a section was left for an answer."""
        return bool(self._wanted)

    @property
    def is_asked_again(self) -> bool:
        """Whether the store was asked before for what a section was left for: the answer came too
        late for it, or the table went on meanwhile."""
        return not self._asked.isdisjoint(self._wanted)

    async def see(self, section: CommitSection, question: Question[T]) -> T:
        if self._place == _Place.of(section.table, section.database) and question in self._seen:
            seen_ms, answer = self._seen[question]
            if section.now_ms - seen_ms < GOOD_FOR_MS:
                if isinstance(answer, Exception):
                    raise answer
                return cast(T, answer)
        self._wanted.append(question)
        raise Behind

    async def look(self, glance: Glance, log: Log, *, within_s: float) -> None:
        """Ask the store what sections wanted to know; a store that does not answer is an answer,
        too. `glance` was taken before."""
        wanted, self._wanted = self._wanted, []
        self._asked.update(wanted)
        for question in wanted:
            try:
                async with asyncio.timeout(within_s):
                    answer: object = await question.ask(log, None)
            except (StorageUnavailable, BrokenLog, UnreadableFile) as error:
                answer = error
            except TimeoutError:
                answer = StorageUnavailable(
                    "the object store took longer than a request may to show this table's log"
                )
            self.note(glance, question, answer)

    def note(self, glance: Glance, question: Question[object], answer: object) -> None:
        """The store was asked after `glance` was taken."""
        place = _Place.of(glance.table, glance.database)
        if place != self._place:
            self._place = place
            self._seen.clear()
        self._seen[question] = glance.now_ms, answer

    def ends(self, table: TableRecord, database: str) -> None:
        """A plain table's log was read into the index to its end, which was seen at this head."""
        self._end = _Place.of(table, database)

    def has_end(self, section: CommitSection) -> bool:
        """Whether a plain table's log was read in to an end that it had since the request came.
        Versions that were committed since lie behind that end."""
        now, end = _Place.of(section.table, section.database), self._end
        return (
            end is not None
            and (end.database, end.epoch) == (now.database, now.epoch)
            and end.version <= now.version
        )
