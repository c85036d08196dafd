"""The first versions of a log that has no metadata, or no protocol, at version 0: what they add up
to."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from tidegate_protocol.log.actions import (
    Action,
    Add,
    DomainMetadata,
    Metadata,
    Protocol,
    Remove,
    Txn,
    file_key,
)
from tidegate_protocol.log.segment import BrokenLog
from tidegate_service.core.limits import CommitLimits


@dataclass(slots=True)
class Beginning:
    """A snapshot that grows in place: there may be as many versions as there are files, and copying
    it for each of them would take the square of that."""

    limits: CommitLimits
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    _files: dict[tuple[str, str | None], Add] = field(default_factory=dict)
    _txns: dict[str, Txn] = field(default_factory=dict)
    _domains: dict[str, DomainMetadata] = field(default_factory=dict)
    _number: int = 0
    _size: int = 0

    def take(self, actions: Sequence[Action]) -> None:
        """Take up the commit of the next version."""
        for action in actions:
            match action:
                case Add():
                    self._files[file_key(action)] = action
                case Remove():
                    self._files.pop(file_key(action), None)
                case Protocol():
                    self.protocol = action
                case Metadata():
                    self.metadata = action
                case Txn():
                    self._txns[action.app_id] = action
                case DomainMetadata(removed=True):
                    self._domains.pop(action.domain, None)
                case DomainMetadata():
                    self._domains[action.domain] = action

    def count(self, number: int, size: int) -> None:
        """Count a version of so many actions and bytes that was taken up, and with which the log is
        still no table. Raises `BrokenLog` where these versions are too many or too long."""
        self._number += number
        self._size += size
        most_actions, most_bytes = self.limits.begin_actions, self.limits.begin_bytes
        if self._number > most_actions or self._size > most_bytes:
            missing = "protocol" if self.protocol is None else "metaData"
            raise BrokenLog(
                f"its first versions have no {missing} action, and more than {most_actions:,} "
                f"actions or {most_bytes:,} bytes, and no more are read without one"
            )

    def portions(self, *, bytes_at_once: int = 4 * 1024 * 1024) -> Iterator[Sequence[Action]]:
        """The snapshot's actions, `limits.begin_portion` at a time. The lines of a portion have
        `bytes_at_once`, beside the line that is too many."""
        single = (self.protocol, self.metadata)
        yield [action for action in single if action is not None]
        portion: list[Action] = []
        size = 0
        kept: Iterator[Action] = chain(
            self._files.values(), self._txns.values(), self._domains.values()
        )
        for action in kept:
            portion.append(action)
            size += len(action.raw)
            if len(portion) == self.limits.begin_portion or size > bytes_at_once:
                yield portion
                portion, size = [], 0
        if portion:
            yield portion
