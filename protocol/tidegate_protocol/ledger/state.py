"""One table as the coordinator knows it: an immutable value and its transitions."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from tidegate_protocol.ledger.outcomes import LandedCommit
from tidegate_protocol.proposal.transaction import ReadState, WinningCommit
from tidegate_protocol.replay.commits import summarize
from tidegate_protocol.replay.snapshot import Snapshot

NO_TIMESTAMP = -1
"""The timestamp before version 0: any clock is later."""


class IdState(Enum):
    """Stands where a transaction id's version would."""

    ABORTED = "aborted"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLedger:
    """A table's ratified log and what is known of its transaction ids, for ever.

    `published_version` is the last version whose file is known to stand in the log's folder: of
    a plain table always the latest. `strays` are files that others put into the folder of a
    catalog-managed table, by the version whose name they took.
    """

    table_id: str
    catalog_managed: bool
    commits: tuple[LandedCommit, ...] = ()
    transactions: Mapping[str, int | IdState] = field(default_factory=dict)
    published_version: int = -1
    strays: Mapping[int, bytes] = field(default_factory=dict)
    quarantine_reason: str | None = None

    @property
    def latest_version(self) -> int:
        return len(self.commits) - 1

    @property
    def latest_timestamp(self) -> int:
        """In ms; `NO_TIMESTAMP` before version 0."""
        return self.commits[-1].timestamp if self.commits else NO_TIMESTAMP

    def snapshot(self, version: int) -> Snapshot:
        """The table at a version from -1, where it is empty, to the latest."""
        return self.commits[version].snapshot if version >= 0 else Snapshot()

    def read_state(self, version: int) -> ReadState:
        return self.snapshot(version).read_state

    def winners(self, after: int) -> tuple[WinningCommit, ...]:
        """Every commit of a version above `after`, in order."""
        return tuple(
            summarize(commit.version, commit.actions, timestamp=commit.timestamp)
            for commit in self.commits[after + 1 :]
        )

    def transaction(self, transaction_id: str) -> LandedCommit | IdState | None:
        """What became of a transaction id; None for one never seen."""
        known = self.transactions.get(transaction_id)
        return self.commits[known] if isinstance(known, int) else known

    def with_commit(self, commit: LandedCommit) -> "TableLedger":
        """The table with its next version. A plain table's stands in the log by that."""
        transactions = dict(self.transactions)
        if commit.transaction_id is not None:
            transactions[commit.transaction_id] = commit.version
        return replace(
            self,
            commits=(*self.commits, commit),
            transactions=transactions,
            published_version=(self.published_version if self.catalog_managed else commit.version),
        )

    def with_aborted(self, transaction_id: str) -> "TableLedger":
        transactions = {**self.transactions, transaction_id: IdState.ABORTED}
        return replace(self, transactions=transactions)

    def with_published(self, version: int) -> "TableLedger":
        strays = {at: content for at, content in self.strays.items() if at > version}
        return replace(self, published_version=version, strays=strays)

    def with_stray(self, version: int, content: bytes) -> "TableLedger":
        return replace(self, strays={**self.strays, version: content})

    def quarantined(self, reason: str) -> "TableLedger":
        return replace(self, quarantine_reason=reason)
