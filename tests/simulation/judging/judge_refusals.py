"""Refusals that no state of the log bears out, by the pure ledger's decision.

Whoever is told of a conflict, or that what it proposed can never be committed, was judged by the
log as it was at some moment between the sending and the answer. The ledger decides by each such
log; where it would have let the proposal land by all of them, the refusal was wrong.
"""

from collections.abc import Iterator, Mapping, Sequence

from tests.chaos.judging.history import Answer, Call, Proposed, Work
from tests.chaos.judging.violations import Kind, Violation
from tests.simulation.ports.store import Folder
from tests.simulation.worlds.works import TABLE, parsed
from tidegate_protocol.base.problems import Code
from tidegate_protocol.ledger.decision import decide
from tidegate_protocol.ledger.outcomes import LandedCommit
from tidegate_protocol.ledger.state import TableLedger
from tidegate_protocol.proposal.transaction import PreparedTransaction, Proposal
from tidegate_protocol.replay.snapshot import Snapshot

# Those that are no judgement of the log, but of ids, of the index's reach, or of a name.
_OTHER = frozenset(
    {
        Code.TRANSACTION_ABORTED,
        Code.TRANSACTION_COMMITTED,
        Code.TRANSACTION_ID_REUSED,
        Code.READ_VERSION_TOO_OLD,
        Code.TABLE_NOT_FOUND,
        Code.TABLE_EXISTS,
    }
)


CODES = frozenset(code.value for code in Code)


def wrong_refusals(
    calls: Sequence[Call], proposals: Mapping[Work, Proposal], folder: Folder
) -> Iterator[Violation]:
    """Of a log that was there from the world's beginning, and is the same to everybody."""
    for call in calls:
        if not isinstance(call, Proposed) or call.answer is not Answer.NEVER:
            continue
        if call.code not in CODES or call.code in _OTHER:
            continue
        proposal = proposals[call.work]
        heads = _heads(folder, call)
        if all(_would_land(folder, head, proposal) for head in heads):
            yield Violation(
                Kind.UNSAFE_ACCEPT,
                TABLE,
                f"{call.work.id} was refused with {call.code}, and would have landed on each of "
                f"the versions {heads}",
            )


def _heads(folder: Folder, call: Proposed) -> list[int]:
    """The newest versions that the log had between the call's sending and its answer."""
    begins = max(
        (version for version, (_, at) in folder.written.items() if at <= call.sent), default=-1
    )
    ends = max(
        (version for version, (_, at) in folder.written.items() if at <= call.answered), default=-1
    )
    return list(range(begins, ends + 1))


def _would_land(folder: Folder, head: int, proposal: Proposal) -> bool:
    table = _ledger(folder, head)
    return table is not None and isinstance(decide(table, proposal), PreparedTransaction)


def _ledger(folder: Folder, head: int) -> TableLedger | None:
    """The log up to a version; None where it has a gap."""
    table = TableLedger(table_id=TABLE, catalog_managed=False)
    snapshot = Snapshot()
    for version in range(head + 1):
        written = folder.written.get(version)
        if written is None:
            return None
        actions = parsed(written[0])
        snapshot = snapshot.apply(version, actions)
        table = table.with_commit(
            LandedCommit(
                version=version,
                timestamp=version,
                content=written[0],
                actions=actions,
                transaction_id=None,
                body_digest=None,
                rebased_over=0,
                snapshot=snapshot,
            )
        )
    return table
