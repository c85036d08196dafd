"""The index's records as the use cases see them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tidegate_protocol.actions import Action, Metadata, Protocol
from tidegate_protocol.content import Content
from tidegate_protocol.transaction import IsolationLevel


class TableState(StrEnum):
    """`quarantined`: readable, but its log and the index disagree, so no commit is taken."""

    ACTIVE = "active"
    QUARANTINED = "quarantined"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTable:
    """A table about to be created; `location` is a canonical URL without a trailing slash."""

    id: str
    name: str
    location: str
    catalog_managed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRecord:
    """A table's head. Timestamps in ms; `num_files` and `size_bytes` of the latest version.

    `latest_version` is -1 only inside the section that creates the table. `first_version` is
    where the index starts: 0, or where the log of a registered table can be read from. `epoch`
    changes whenever what the index holds of the table was made anew.
    """

    id: str
    name: str
    location: str
    catalog_managed: bool
    state: TableState
    state_reason: str | None
    latest_version: int
    published_version: int
    latest_timestamp: int
    protocol: Protocol | None
    metadata: Metadata | None
    num_files: int
    size_bytes: int
    first_version: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMetrics:
    """What a commit did, as the answer to its proposal reports it."""

    num_added_files: int
    num_removed_files: int
    bytes_added: int
    bytes_removed: int
    attempts: int
    duration_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRecord:
    """One version's row. `transaction_id` and `body_digest` are None for a foreign commit
    that carries no usable `commitInfo.txnId`; `content_sha256` is of the bytes of `<v>.json`,
    None for the first version of a registered table where only a checkpoint is left of it."""

    version: int
    timestamp: int
    transaction_id: str | None
    body_digest: str | None
    content_sha256: str | None
    operation: str | None
    operation_parameters: Mapping[str, Any] = field(default_factory=dict)
    operation_metrics: Mapping[str, Any] = field(default_factory=dict)
    isolation_level: IsolationLevel | None
    is_blind_append: bool
    read_version: int | None
    rebased_over: int
    engine_info: str | None
    user_metadata: str | None
    tags: Mapping[str, str | None] = field(default_factory=dict)
    foreign: bool
    metrics: CommitMetrics
    principal: str | None = None
    request_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RatifiedCommit:
    """A version to write into the index: its row, its actions and its bytes, which are None
    exactly where the record's `content_sha256` is."""

    record: CommitRecord
    actions: tuple[Action, ...]
    content: Content | None
    published: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """The first versions of a table that wait for publishing, in order, and their bytes; `behind`
    is how many wait in all."""

    versions: Sequence[tuple[int, Content]]
    behind: int


@dataclass(frozen=True, slots=True)
class Aborted:
    """The transaction id was tombstoned and will never land. `unfenced_after` is the head of a
    plain table that nothing was committed to for it: until something is, an attempt that is on
    its way may yet take the version after (`core.fence`)."""

    transaction_id: str
    unfenced_after: int | None = None
