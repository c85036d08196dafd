"""The coordinator as a pure state machine: its executable specification.

A `Ledger` is everything that a coordinator has to know, and each operation answers with the
next ledger and an outcome. There is no clock (`now_ms` comes in), no storage and no database:
what the service does with locks, transactions and object storage has to look, from outside, as
if these functions had been called one after another. It is the oracle of the state-machine
tests; promises I2 to I7, I9, I12 and I14 of `docs/invariants.md` are theorems about it.

Operations on one table never look at another.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate_protocol.base.problems import Code
from tidegate_protocol.ledger.decision import decide
from tidegate_protocol.ledger.outcomes import (
    AbortOutcome,
    ConflictCheckOutcome,
    Created,
    CreateOutcome,
    ForeignOutcome,
    ForgetOutcome,
    Forgotten,
    Ingested,
    LandedCommit,
    NothingToPublish,
    ProposeOutcome,
    Published,
    PublishOutcome,
    Quarantined,
    Ratified,
    ReadOutcome,
    Stray,
    TableExists,
    TableNotFound,
    TransactionAborted,
    TransactionCommitted,
    Unpublished,
    VersionNotFound,
    WouldCommit,
)
from tidegate_protocol.ledger.state import TableLedger
from tidegate_protocol.log.content import whole
from tidegate_protocol.prepare.finalize import complete
from tidegate_protocol.prepare.prepare import is_invalid_at_any_version, prepare
from tidegate_protocol.prepare.table import is_catalog_managed
from tidegate_protocol.proposal.transaction import (
    Invalid,
    PreparedTransaction,
    Proposal,
    ReadyCommit,
)
from tidegate_protocol.replay.commits import (
    UnreadableCommit,
    body_digest,
    commit_info,
)
from tidegate_protocol.replay.foreign import committed_ms, parse_foreign_commit
from tidegate_protocol.replay.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Ledger:
    """Every table, by its id. `Ledger()` knows none."""

    tables: Mapping[str, TableLedger] = field(default_factory=dict)

    def create(
        self, table_id: str, proposal: Proposal, *, now_ms: int
    ) -> tuple["Ledger", CreateOutcome]:
        """Land version 0, which decides by its protocol which kind of table this is.

        The proposal's read version must be -1.
        """
        if table_id in self.tables:
            return self, TableExists(table_id=table_id)
        if proposal.read_version != -1:
            return self, Invalid(
                code=Code.INVALID_REQUEST,
                detail=f"read_version is {proposal.read_version}; a table is created from -1",
            )
        txn = prepare(proposal, Snapshot().read_state)
        if isinstance(txn, Invalid):
            return self, txn
        table = TableLedger(table_id=table_id, catalog_managed=is_catalog_managed(txn.protocol))
        table, commit = _land(table, txn, now_ms=now_ms)
        return self._with(table), Created(commit=commit)

    def propose(
        self, table_id: str, proposal: Proposal, *, now_ms: int
    ) -> tuple["Ledger", ProposeOutcome]:
        """Check a proposal for conflicts with everything since its read version, and land it.

        An answer of `Conflict` or `Invalid` is final: the same id and body never land later.
        A proposal without a read version is checked by the table as it is now, so that only
        an aborted id can keep that promise for it, unless no table would take it.
        """
        table = self.tables.get(table_id)
        if table is None:
            return self, TableNotFound(table_id=table_id)
        decision = decide(table, proposal)
        if isinstance(decision, PreparedTransaction):
            table, commit = _land(table, decision, now_ms=now_ms)
            return self._with(table), Ratified(commit=commit)
        if isinstance(decision, Invalid) and _may_be_valid_later(table, proposal):
            return self._with(table.with_aborted(proposal.transaction_id)), decision
        return self, decision

    def conflict_check(self, table_id: str, proposal: Proposal) -> ConflictCheckOutcome:
        """What `propose` would answer now; nothing is landed and nothing remembered."""
        table = self.tables.get(table_id)
        if table is None:
            return TableNotFound(table_id=table_id)
        decision = decide(table, proposal)
        if not isinstance(decision, PreparedTransaction):
            return decision
        return WouldCommit(
            version=decision.checked_through + 1,
            read_version=decision.read.version,
            rebased_over=decision.checked_through - decision.read.version,
            isolation_level=decision.isolation_level,
            is_blind_append=decision.is_blind_append,
        )

    def abort(self, table_id: str, transaction_id: str) -> tuple["Ledger", AbortOutcome]:
        """Make sure that a transaction id never lands, unless it has."""
        table = self.tables.get(table_id)
        if table is None:
            return self, TableNotFound(table_id=table_id)
        known = table.transaction(transaction_id)
        if isinstance(known, LandedCommit):
            return self, TransactionCommitted(commit=known)
        aborted = TransactionAborted(transaction_id=transaction_id)
        return self._with(table.with_aborted(transaction_id)), aborted

    def foreign_commit(
        self, table_id: str, content: bytes, *, modified_ms: int
    ) -> tuple["Ledger", ForeignOutcome]:
        """Another writer takes the next free file name of the log's folder.

        On a plain table the file is the next version the moment it exists, and one that cannot
        be read quarantines the table. On a catalog-managed table it is nothing until that
        version is published. `modified_ms` is the file's time (`committed_ms`).
        """
        table = self.tables.get(table_id)
        if table is None:
            return self, TableNotFound(table_id=table_id)
        if table.catalog_managed:
            version = table.published_version + 1
            while version in table.strays:
                version += 1
            return self._with(table.with_stray(version, content)), Stray(version=version)
        if table.quarantine_reason is not None:
            return self, Quarantined(table_id=table_id, reason=table.quarantine_reason)
        ingested = _ingest(table, content, modified_ms=modified_ms)
        if isinstance(ingested, str):
            return self._quarantine(table, ingested)
        return self._with(table.with_commit(ingested)), Ingested(commit=ingested)

    def publish(self, table_id: str) -> tuple["Ledger", PublishOutcome]:
        """Put the first unpublished version into the log's folder, if it is not there yet.

        A file of other bytes in its place quarantines the table; it is never overwritten.
        """
        table = self.tables.get(table_id)
        if table is None:
            return self, TableNotFound(table_id=table_id)
        if table.quarantine_reason is not None:
            return self, Quarantined(table_id=table_id, reason=table.quarantine_reason)
        version = table.published_version + 1
        if version > table.latest_version:
            return self, NothingToPublish()
        content = table.commits[version].content
        if table.strays.get(version, content) != content:
            return self._quarantine(table, f"version {version} of the log has other bytes")
        return self._with(table.with_published(version)), Published(version=version)

    def forget(self, table_id: str) -> tuple["Ledger", ForgetOutcome]:
        """Know nothing of the table any more. Its files stay, so every version must be one."""
        table = self.tables.get(table_id)
        if table is None:
            return self, TableNotFound(table_id=table_id)
        if table.published_version < table.latest_version:
            return self, Unpublished(
                published_version=table.published_version, latest_version=table.latest_version
            )
        tables = {known: value for known, value in self.tables.items() if known != table_id}
        return Ledger(tables), Forgotten(table_id=table_id)

    def read(self, table_id: str, version: int | None = None) -> ReadOutcome:
        """The table at a version, or at the latest; quarantined tables are readable."""
        table = self.tables.get(table_id)
        if table is None:
            return TableNotFound(table_id=table_id)
        latest = table.latest_version
        wanted = latest if version is None else version
        if not 0 <= wanted <= latest:
            return VersionNotFound(table_id=table_id, version=wanted, latest_version=latest)
        return table.snapshot(wanted)

    def _with(self, table: TableLedger) -> "Ledger":
        return Ledger({**self.tables, table.table_id: table})

    def _quarantine(self, table: TableLedger, reason: str) -> tuple["Ledger", Quarantined]:
        outcome = Quarantined(table_id=table.table_id, reason=reason)
        return self._with(table.quarantined(reason)), outcome


def _may_be_valid_later(table: TableLedger, proposal: Proposal) -> bool:
    """Whether what is invalid now might be a version after the next one."""
    if proposal.read_version is not None or proposal.transaction_id in table.transactions:
        return False
    return not is_invalid_at_any_version(proposal)


def _land(
    table: TableLedger, txn: PreparedTransaction, *, now_ms: int
) -> tuple[TableLedger, LandedCommit]:
    version = table.latest_version + 1
    ready: ReadyCommit = complete(
        txn, now_ms=now_ms, previous_timestamp=table.latest_timestamp, version=version
    )
    commit = LandedCommit(
        version=version,
        timestamp=ready.timestamp,
        content=whole(ready.content),
        actions=ready.actions,
        transaction_id=txn.proposal.transaction_id,
        body_digest=txn.proposal.digest(),
        rebased_over=txn.checked_through - txn.read.version,
        snapshot=table.snapshot(version - 1).apply(version, ready.actions),
    )
    return table.with_commit(commit), commit


def _ingest(table: TableLedger, content: bytes, *, modified_ms: int) -> LandedCommit | str:
    """The next version as found in the log, or why it cannot be one.

    A commit with this service's own marks is a proposal that landed without being recorded: its
    id answers replays from now on, even one that was aborted: the log wins. An id that is taken
    stays with whom it belongs to.
    """
    version = table.latest_version + 1
    try:
        actions = parse_foreign_commit(content)
        before = table.snapshot(version - 1)
        committed = committed_ms(version, actions, before=before.metadata, modified_ms=modified_ms)
    except UnreadableCommit as error:
        return f"version {version} cannot be read: {error}"
    snapshot = before.apply(version, actions)
    info = commit_info(actions)
    transaction_id = None if info is None else info.txn_id
    digest = None if info is None else body_digest(info)
    known = None if transaction_id is None else table.transaction(transaction_id)
    if isinstance(known, LandedCommit) or (known is not None and digest is None):
        transaction_id = None
    return LandedCommit(
        version=version,
        # Other writers' clocks differ; the versions of a table are in the order of time.
        timestamp=max(committed, table.latest_timestamp + 1),
        content=content,
        actions=actions,
        transaction_id=transaction_id,
        body_digest=digest,
        rebased_over=0,
        snapshot=snapshot,
    )
