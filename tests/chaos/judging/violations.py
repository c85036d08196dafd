"""What can be wrong with a history."""

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """One for each thing that the judge looks for."""

    GAP = "the versions of the log, or the service's, are not 0 to the head"
    DUPLICATE = "a transaction landed twice, or a file was added twice"
    LOST = "an acked commit is not in the log where it was said to be"
    LANDED_AFTER_ALL = "what was said to never land has landed"
    REPLAY_DIFFERS = "two answers to the same work disagree"
    OTHER_BYTES = "the bytes of a version are not the same for everybody"
    ORDER = "the order of versions contradicts the order of time"
    STALE_READ = "a read saw less than was known when it began"
    LOST_UPDATE = "a read-modify-write replaced another value than the one that it read"
    UNSAFE_ACCEPT = "a commit landed over one that it conflicts with"
    PUBLISHED = "what was published shrank, or is not what the service holds"
    TIMESTAMP = "timestamps do not grow from version to version, or differ from the answer"
    STRANGER = "a version carries an id that nobody proposed"


@dataclass(frozen=True, slots=True)
class Violation:
    """One finding; the detail tells which version, id and file."""

    kind: Kind
    table: str
    detail: str
