"""What becomes of a proposal, beside the protocol's `Conflict` and `Invalid`."""

from dataclasses import dataclass

from tidegate_protocol.proposal.transaction import Conflict, Invalid, IsolationLevel
from tidegate_service.core.ports.records import CommitRecord, TableHead


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """The transaction is in the log; `replayed` says that an earlier request put it there."""

    table: TableHead
    record: CommitRecord
    published: bool
    replayed: bool


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
