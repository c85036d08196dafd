"""What clients of Unity Catalog's API ask of a table, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate_protocol.log.actions import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class AddCommit:
    """A commit that lies in `_staged_commits` as `file_name`; `timestamp` is its in-commit
    timestamp, in ms, and `file_size` in bytes."""

    version: int
    timestamp: int
    file_name: str
    file_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What is said of a table beside a commit. `columns` is Delta's struct as JSON: a text, since
    what it says may be a hundred thousand values. A field is None where nothing is said of it;
    `comment` is then as `comment_is_said` says."""

    columns: str | None = None
    partition_columns: tuple[str, ...] | None = None
    protocol: Protocol | None = None
    set_properties: Mapping[str, str] = field(default_factory=dict)
    removed_properties: frozenset[str] = frozenset()
    comment: str | None = None
    comment_is_said: bool = False
    set_domains: Mapping[str, Any] = field(default_factory=dict)
    removed_domains: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """One update of a table: all of it or nothing. `table_uuid` and `etag` are what the table has
    to have; `published` is the newest version that the client has seen in the log."""

    table_uuid: str | None = None
    etag: str | None = None
    commit: AddCommit | None = None
    published: int | None = None
    definition: Definition = field(default_factory=Definition)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewStockTable:
    """A table whose version 0 its client has written at `location`, where it was told to."""

    name: str
    location: str
    timestamp: int | None
    definition: Definition
