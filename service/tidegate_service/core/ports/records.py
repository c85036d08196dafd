"""The index's records as the use cases see them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

from tidegate_protocol.log.actions import Action, Metadata, Protocol
from tidegate_protocol.log.content import Content
from tidegate_protocol.proposal.transaction import BYTES_AN_ACTION, IsolationLevel
from tidegate_service.core.ports.kinds import TableIdentity

PAGE_BYTES = 4 * 1024 * 1024
"""What writers said in the rows of a page, at most, but for the last one's."""
DETAILS_BYTES = 256 * 1024
"""The same of a page of commits, which may be all short values: these are made one by one."""


class TableState(StrEnum):
    """`quarantined`: readable, but its log and the index disagree, so no commit is taken."""

    ACTIVE = "active"
    QUARANTINED = "quarantined"


class QuarantineCause(StrEnum):
    """What a table is quarantined for. `log`: its log holds, or lacks, what keeps the index from
    going on; it is to be mended there. `set-back`: the database has lost versions of it
    (`core.catalog_managed.set_back`); it is to be rebuilt. `given-up`: an operator says that
    nothing of it is to be waited for; it is to be forgotten, whatever lies at its place."""

    LOG = "log"
    SET_BACK = "set-back"
    GIVEN_UP = "given-up"


class NewTable(TableIdentity):
    """A table about to be created."""

    __slots__ = ()


LONG_METADATA = 64 * 1024
"""In bytes. Whoever reads more of a table's protocol and metadata waits for a turn, and a table
with more has groups of commits of its own, since reading it takes long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableHead(TableIdentity):
    """A table's head without its protocol and metadata, which may be megabytes. Timestamps in ms;
    `num_files` and `size_bytes` of the latest version.

    `latest_version` is -1 only inside the section that creates the table. `first_version` is
    where the index starts: 0, where the log of a registered table can be read from, or where the
    index was cut since (`core.upkeep.expired_versions`). `epoch` changes whenever what the index
    holds of the table was made anew. `quarantine_cause` is None of a table that is not quarantined,
    or that a release without causes quarantined.
    `metadata_bytes` is what protocol and metadata take in the row, where it was read without them.
    """

    state: TableState
    state_reason: str | None
    quarantine_cause: QuarantineCause | None
    latest_version: int
    published_version: int
    latest_timestamp: int
    num_files: int
    size_bytes: int
    first_version: int
    epoch: int
    metadata_bytes: int = field(default=0, compare=False)

    def with_state(self, protocol: Protocol | None, metadata: Metadata | None) -> "TableRecord":
        """The head with what its version's protocol and metadata are."""
        values = {field.name: getattr(self, field.name) for field in fields(TableHead)}
        return TableRecord(**values, protocol=protocol, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRecord(TableHead):
    """A table's head with its protocol and metadata at the latest version."""

    protocol: Protocol | None
    metadata: Metadata | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    """A table's row as it is seen without its lock; `now_ms` and `database` as of a commit
    section. `published_sha256` is of the bytes of the last version that is published, None where
    none is or only its checkpoint was known."""

    table: TableHead
    published_sha256: str | None
    now_ms: int
    database: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenTable(TableIdentity):
    """What a table was when it was forgotten (`core.ports.forgotten`). `content_sha256` is of the
    bytes of `latest_version`, None where only its checkpoint was known; `forgotten_ms` by the
    database's clock."""

    latest_version: int
    content_sha256: str | None
    forgotten_ms: int


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
class CommitGlance:
    """What a version's row has beside what its writer said, which may be megabytes: of these, what
    is told most often. As in `CommitRecord`."""

    timestamp: int
    body_digest: str | None
    content_sha256: str | None


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

    @property
    def weight(self) -> int:
        """How much work its actions make, in usual ones, as `Proposal.weight`."""
        size = 0 if self.content is None else len(self.content)
        return max(len(self.actions), size // BYTES_AN_ACTION)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """The first versions of a table that wait for publishing, in order, and their bytes; `behind`
    is how many wait in all, and `database` where they do (`CommitSection.database`)."""

    versions: Sequence[tuple[int, Content]]
    behind: int
    database: str


@dataclass(frozen=True, slots=True)
class Aborted:
    """The transaction id was aborted and will never land, unless an earlier release did that
    without a fence (`core.commit.batches.abort_fence`), at the head that `unfenced_after` is
    then."""

    transaction_id: str
    unfenced_after: int | None = None
