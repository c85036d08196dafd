"""What the ledger answers: every expected outcome of an operation, as a value.

`Conflict` and `Invalid` are in `transaction`; the rest is here.
"""

from dataclasses import dataclass

from tidegate_protocol.log.actions import Action
from tidegate_protocol.proposal.transaction import Conflict, Invalid, IsolationLevel
from tidegate_protocol.replay.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class LandedCommit:
    """One version of a table's log, and the table after it.

    `timestamp` in ms. `transaction_id` and `body_digest` are None where another engine wrote
    the commit and left no transaction id that is free to use. `rebased_over` counts the
    versions between the one that was read and this one.
    """

    version: int
    timestamp: int
    content: bytes
    actions: tuple[Action, ...]
    transaction_id: str | None
    body_digest: str | None
    rebased_over: int
    snapshot: Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """Version 0 landed, and with it the table exists."""

    commit: LandedCommit


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratified:
    """The proposal landed now."""

    commit: LandedCommit


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """The same id and body landed before; nothing happened now."""

    commit: LandedCommit


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingToCommit:
    """An empty proposal that asked to be skipped then; no version was taken."""

    read_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WouldCommit:
    """A conflict check: proposed now, it would land as this version."""

    version: int
    read_version: int
    rebased_over: int
    isolation_level: IsolationLevel
    is_blind_append: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionAborted:
    """The transaction id was aborted and will never land."""

    transaction_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionCommitted:
    """An abort came too late: the transaction has landed."""

    commit: LandedCommit


@dataclass(frozen=True, slots=True, kw_only=True)
class TableExists:
    table_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableNotFound:
    table_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionNotFound:
    """The table has no such version; it may have one day."""

    table_id: str
    version: int
    latest_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantined:
    """The table is readable but takes no commit: its log cannot be trusted."""

    table_id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingested:
    """A file that another engine wrote is the table's newest version."""

    commit: LandedCommit


@dataclass(frozen=True, slots=True, kw_only=True)
class Stray:
    """A file stands where a catalog-managed table will publish this version. It is part of
    nothing until then; readers that ask the service never see it."""

    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """`<version>.json` stands in the log with the ratified bytes."""

    version: int


@dataclass(frozen=True, slots=True)
class NothingToPublish:
    """Every ratified version is published."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpublished:
    """The table cannot be forgotten: ratified versions are nowhere but here."""

    published_version: int
    latest_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """The coordinator knows nothing of the table any more; its files stay."""

    table_id: str


CreateOutcome = Created | TableExists | Invalid
ProposeOutcome = (
    Ratified
    | Replayed
    | NothingToCommit
    | Conflict
    | Invalid
    | TransactionAborted
    | TableNotFound
    | VersionNotFound
    | Quarantined
)
ConflictCheckOutcome = (
    WouldCommit
    | Replayed
    | NothingToCommit
    | Conflict
    | Invalid
    | TransactionAborted
    | TableNotFound
    | VersionNotFound
    | Quarantined
)
AbortOutcome = TransactionAborted | TransactionCommitted | TableNotFound
ForeignOutcome = Ingested | Stray | Quarantined | TableNotFound
PublishOutcome = Published | NothingToPublish | Quarantined | TableNotFound
ForgetOutcome = Forgotten | Unpublished | TableNotFound
ReadOutcome = Snapshot | TableNotFound | VersionNotFound
