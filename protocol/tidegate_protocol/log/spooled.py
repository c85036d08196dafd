"""File actions whose bytes are kept elsewhere: what a commit of a million of them is made of.

Such an action holds what the rules look at. Its statistics and its log line, which are most of
its size, are read from the text that it came in when somebody asks. It has passed every check that
needs no table: its path may stand in a commit, its numbers and statistics are what they should be,
and it has no deletion vector.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec
from msgspec import Struct, field

from tidegate_protocol.log import paths
from tidegate_protocol.log.actions import Add, Remove
from tidegate_protocol.log.statistics import is_statistics


class Lines(Protocol):
    """`count` log lines that are kept together, counted from 0; `size` is their bytes."""

    @property
    def count(self) -> int: ...

    @property
    def size(self) -> int: ...

    def lines(self) -> Sequence[bytes]: ...

    def text(self) -> bytes:
        """All of them, each ended by a newline."""
        ...


class SpooledAdd(Add, frozen=True, kw_only=True, gc=False):
    """An add whose log line is `source.lines()[at]`."""

    source: Lines = field(name=" source")
    at: int = field(name=" at")

    @property  # type: ignore[misc]
    def raw(self) -> bytes:
        return self.source.lines()[self.at]

    @property  # type: ignore[misc]
    def stats(self) -> str | None:
        return statistics_in(self.raw)


class SpooledRemove(Remove, frozen=True, kw_only=True, gc=False):
    """A remove whose log line is `source.lines()[at]`."""

    source: Lines = field(name=" source")
    at: int = field(name=" at")

    @property  # type: ignore[misc]
    def raw(self) -> bytes:
        return self.source.lines()[self.at]

    @property  # type: ignore[misc]
    def stats(self) -> str | None:
        return _REMOVE.decode(self.raw).remove.stats


Spooled = SpooledAdd | SpooledRemove


def spooled(action: Add | Remove, source: Lines, at: int) -> Spooled | None:
    """The action without its bytes, which are `source.lines()[at]`; None for one that has to stay
    whole, because something is wrong with it or it has a deletion vector."""
    if action.deletion_vector is not None or not _is_path(action.path):
        return None
    if isinstance(action, Remove):
        numbers = (action.size, action.deletion_timestamp)
        if any(number is not None and number < 0 for number in numbers):
            return None
        return SpooledRemove(
            path=action.path,
            data_change=action.data_change,
            deletion_timestamp=action.deletion_timestamp,
            extended_file_metadata=action.extended_file_metadata,
            partition_values=action.partition_values,
            size=action.size,
            tags=action.tags,
            base_row_id=action.base_row_id,
            default_row_commit_version=action.default_row_commit_version,
            source=source,
            at=at,
        )
    if action.size <= 0 or action.modification_time < 0:
        return None
    if action.stats is not None and not is_statistics(action.stats):
        return None
    return SpooledAdd(
        path=action.path,
        partition_values=action.partition_values,
        size=action.size,
        modification_time=action.modification_time,
        data_change=action.data_change,
        tags=action.tags,
        base_row_id=action.base_row_id,
        default_row_commit_version=action.default_row_commit_version,
        clustering_provider=action.clustering_provider,
        source=source,
        at=at,
    )


def _is_path(path: str) -> bool:
    try:
        paths.check(path)
    except paths.InvalidPath:
        return False
    return True


def statistics_in(line: bytes) -> str | None:
    """What an add's log line has as its statistics. Raises `msgspec.DecodeError` where it is no
    such line."""
    return _ADD.decode(line).add.stats


class _Stats(Struct, gc=False):
    stats: str | None = None


class _AddLine(Struct, gc=False):
    add: _Stats


class _RemoveLine(Struct, gc=False):
    remove: _Stats


_ADD = msgspec.json.Decoder(_AddLine)
_REMOVE = msgspec.json.Decoder(_RemoveLine)
