"""What becomes of a proposal: the pure function of a table and a proposal inside the ledger."""

from tidegate_protocol.base.problems import Code
from tidegate_protocol.conflict.answer import with_hint
from tidegate_protocol.conflict.checker import check_conflicts
from tidegate_protocol.features.file_demands import check_live_files
from tidegate_protocol.ledger.outcomes import (
    LandedCommit,
    NothingToCommit,
    Quarantined,
    Replayed,
    TransactionAborted,
    VersionNotFound,
)
from tidegate_protocol.ledger.state import TableLedger
from tidegate_protocol.prepare.live_files import assumptions_of_transaction, check_assumptions
from tidegate_protocol.prepare.prepare import prepare
from tidegate_protocol.proposal.isolation import may_skip
from tidegate_protocol.proposal.transaction import Conflict, Invalid, PreparedTransaction, Proposal

Decision = (
    PreparedTransaction
    | Replayed
    | NothingToCommit
    | Conflict
    | Invalid
    | TransactionAborted
    | VersionNotFound
    | Quarantined
)


def decide(table: TableLedger, proposal: Proposal) -> Decision:
    """The transaction checked through the table's latest version, or why it does not land.

    The transaction id comes first, before anything that could have changed since the first
    answer; then validation, with what its actions say of live files; then the winners, then what it
    demands of every live file.
    """
    known = table.transaction(proposal.transaction_id)
    if isinstance(known, LandedCommit):
        return _replay(proposal, known)
    if known is not None:
        return TransactionAborted(transaction_id=proposal.transaction_id)
    if table.quarantine_reason is not None:
        return Quarantined(table_id=table.table_id, reason=table.quarantine_reason)
    latest = table.latest_version
    read_version = latest if proposal.read_version is None else proposal.read_version
    if read_version < -1:
        return Invalid(
            code=Code.INVALID_REQUEST, detail=f"read_version is {read_version}; expected -1 or more"
        )
    if read_version > latest:
        return VersionNotFound(table_id=table.table_id, version=read_version, latest_version=latest)
    txn = prepare(proposal, table.read_state(read_version))
    if isinstance(txn, Invalid):
        return txn
    if may_skip(txn):
        return NothingToCommit(read_version=read_version)
    live = table.snapshot(read_version).files
    assumed = assumptions_of_transaction(txn)
    broken = assumed.broken(live)
    invalid = check_assumptions(proposal.actions, assumed, broken, version=read_version)
    if invalid is not None:
        return invalid
    outcome = check_conflicts(txn, table.winners(read_version))
    if not isinstance(outcome, Conflict):
        # Last, since all files of the table are gone through; as the index has them, by their keys.
        files = [live[key] for key in sorted(live, key=lambda key: (key[0], key[1] or ""))]
        return check_live_files(txn, files) or outcome
    if outcome.read_file is None:
        return outcome
    read_file = table.snapshot(read_version).file_at(outcome.read_file)
    values = None if read_file is None else read_file.partition_values
    return with_hint(outcome, txn.read, values)


def _replay(proposal: Proposal, commit: LandedCommit) -> Replayed | Invalid:
    if commit.body_digest == proposal.digest():
        return Replayed(commit=commit)
    return Invalid(
        code=Code.TRANSACTION_ID_REUSED,
        detail=f"transaction id {proposal.transaction_id!r} landed as version {commit.version} "
        "with another body; a new proposal needs a new id",
    )
