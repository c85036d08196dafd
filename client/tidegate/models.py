"""What the service answers with, as frozen values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from tidegate.commit_stats import CommitStats
from tidegate_protocol.log.actions import Add, Metadata, Protocol
from tidegate_protocol.proposal.transaction import IsolationLevel
from tidegate_protocol.schema.table_schema import StructType, parse_schema

DataFile = Add
"""A data file is the log's `add` action: percent-encoded `path` relative to the table's
location, `partition_values`, `size` in bytes, `stats` as JSON text, ..."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableVersion:
    """A table as of one version; `timestamp` (ms) is the version's own."""

    id: str
    name: str
    location: str
    version: int
    timestamp: int
    protocol: Protocol
    metadata: Metadata

    @property
    def schema(self) -> StructType:
        """Parsed anew at each call; `metadata.schema_string` is its JSON text."""
        return parse_schema(self.metadata.schema_string)

    @property
    def partition_columns(self) -> tuple[str, ...]:
        return self.metadata.partition_columns

    @property
    def properties(self) -> Mapping[str, str]:
        return self.metadata.configuration


@dataclass(frozen=True, slots=True, kw_only=True)
class TableHead(TableVersion):
    """A table at its latest version; `num_files` and `size_bytes` are of it.

    `state` is `active` or `quarantined` (readable, but closed to commits, for `state_reason`).
    """

    published_version: int
    num_files: int
    size_bytes: int
    catalog_managed: bool
    state: str
    state_reason: str | None


class CommitMetrics(Struct, frozen=True, kw_only=True):
    """What a commit did; `duration_ms` as the service measured it."""

    num_added_files: int
    num_removed_files: int
    bytes_added: int
    bytes_removed: int
    attempts: int
    duration_ms: int


class Receipt(Struct, frozen=True, kw_only=True):
    """A commit that landed as `version`.

    `timestamp` in ms. `rebased_over` counts the winners between `read_version` and `version`.
    `published` says whether `<version>.json` was already visible in the log, `replayed` whether
    an earlier copy of the same proposal had landed it. `stats` are of a commit by this process's
    own transaction.
    """

    table: str
    version: int
    read_version: int
    transaction_id: str
    timestamp: int
    isolation_level: IsolationLevel
    is_blind_append: bool
    rebased_over: int
    published: bool
    replayed: bool
    metrics: CommitMetrics
    stats: CommitStats | None = None


class Commit(Struct, frozen=True, kw_only=True):
    """One version of a table's history; `timestamp` in ms, `content_sha256` (hex) of the bytes
    of `<version>.json`, None for the first version of a registered table that only a checkpoint
    is left of.

    `transaction_id` is None for a `foreign` commit that names none: one that was written to the
    log past the service.
    """

    version: int
    timestamp: int
    operation: str | None
    transaction_id: str | None
    is_blind_append: bool
    isolation_level: IsolationLevel | None
    read_version: int | None
    rebased_over: int
    foreign: bool
    content_sha256: str | None
    metrics: CommitMetrics
    operation_parameters: dict[str, Any] = {}
    operation_metrics: dict[str, Any] = {}
    engine_info: str | None = None
    user_metadata: str | None = None
    tags: dict[str, str | None] = {}


class TransactionStatus(Struct, frozen=True, kw_only=True):
    """What is known of a transaction id: `committed` as `version`, `pending` or `aborted`.

    `commit` is the receipt of one that is committed, as proposing the same again would return.
    """

    state: str
    version: int | None = None
    commit: Receipt | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """The files of a table at `version` that may hold rows asked for; `timestamp` in ms is the
    version's own, `metadata` and `protocol` are the table's as of then."""

    version: int
    timestamp: int
    metadata: Metadata
    protocol: Protocol
    files: tuple[DataFile, ...]

    @property
    def schema(self) -> StructType:
        """Parsed anew at each call; `metadata.schema_string` is its JSON text."""
        return parse_schema(self.metadata.schema_string)


@dataclass(frozen=True, slots=True)
class TablePage:
    """One page of the list of tables; `next_cursor` is None on the last one."""

    tables: tuple[TableHead, ...]
    next_cursor: str | None


class HistoryPage(Struct, frozen=True, kw_only=True):
    """One page of a table's history; `next_to_version` is None on the last one."""

    commits: tuple[Commit, ...]
    next_to_version: int | None = None
