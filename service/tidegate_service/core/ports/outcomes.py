"""What becomes of a proposal, beside the protocol's `Conflict` and `Invalid`."""

from dataclasses import dataclass

from tidegate_protocol.proposal.transaction import Conflict, Invalid, IsolationLevel
from tidegate_service.core.ports.records import CommitRecord, TableHead


@dataclass(frozen=True, slots=True, kw_only=True)
class TableTotals:
    """What a table holds at a version."""

    version: int
    num_files: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """The transaction is in the log; `replayed` says that an earlier request put it there. One that
    landed now says in which `database`, how many ms its checks took, and once it is saved, what its
    group left of the table."""

    table: TableHead
    record: CommitRecord
    published: bool
    replayed: bool
    database: str | None = None
    check_ms: int | None = None
    totals: TableTotals | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingToCommit:
    """The proposal has no actions and asked to be skipped then."""

    table: TableHead
    transaction_id: str
    read_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WouldCommit:
    """What a proposal would become if it were sent now and nobody else were faster."""

    table: TableHead
    transaction_id: str
    version: int
    read_version: int
    isolation_level: IsolationLevel
    is_blind_append: bool
    rebased_over: int


Outcome = Committed | NothingToCommit | Conflict | Invalid
"""What `propose` answers."""
