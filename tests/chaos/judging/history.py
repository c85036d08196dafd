"""What clients saw of a run, and what was there at its end: all that the judge knows.

Times are seconds on one monotonic clock, read right before a request is sent and right after
its answer has arrived. A table has one partition column; files are named once for ever.
"""

from dataclasses import dataclass, field
from enum import Enum


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One body under one transaction id, as its client proposed it.

    It read the partitions `read`, or the whole table, at `read_version` (None: it read nothing),
    and how far the application `app` had come, which it then wrote to. A work on a register,
    a partition that holds one file, replaces `parent`, which it read there, by a file of its own.
    """

    table: str
    id: str
    adds: tuple[tuple[str, str], ...]
    removes: tuple[str, ...] = ()
    read_version: int | None = None
    read: frozenset[str] = frozenset()
    whole_table: bool = False
    app: str | None = None
    register: str | None = None
    parent: str | None = None


class Answer(Enum):
    """What an answer says (promise I5). UNKNOWN is also no answer at all."""

    LANDED = "landed"
    NEVER = "will never land"
    NOT_EXECUTED = "this copy was not executed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """One copy of a work, sent once. `version` and `timestamp` (ms) are of what landed."""

    work: Work
    sent: float
    answered: float
    answer: Answer
    code: str = ""
    version: int | None = None
    timestamp: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortedBy:
    """An abort that was answered with success: no body of this id ever lands."""

    table: str
    id: str
    sent: float
    answered: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """A table's head, as read."""

    table: str
    sent: float
    answered: float
    version: int
    published: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadBytes:
    """A version's content, as read: the SHA-256 of its bytes."""

    table: str
    version: int
    sha256: str


Call = Proposed | AbortedBy | Looked | ReadBytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A version as the service tells of it. `id` is None for a foreign commit; `timestamp` is where
    nobody was ever told of it."""

    version: int
    id: str | None
    timestamp: int | None
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Final:
    """A table once everything has come to rest: the files of its log as they lie in storage, by
    version, and what the service says of it."""

    table: str
    catalog_managed: bool
    log: dict[int, bytes]
    rows: tuple[Row, ...]


@dataclass(slots=True)
class History:
    """Everything that happened, in no order."""

    calls: list[Call] = field(default_factory=list)
    finals: dict[str, Final] = field(default_factory=dict)
