"""Isolation levels: which one a transaction is checked at (Delta: TransactionHelper.scala)."""

from collections.abc import Sequence

from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.actions import Action, Add, AddCDCFile, Remove, UnknownAction, has_any
from tidegate_protocol.proposal import operations
from tidegate_protocol.proposal.transaction import (
    Invalid,
    IsolationLevel,
    PreparedTransaction,
    Reads,
    WinningCommit,
)

_STRICTNESS = {
    IsolationLevel.SNAPSHOT_ISOLATION: 0,
    IsolationLevel.WRITE_SERIALIZABLE: 1,
    IsolationLevel.SERIALIZABLE: 2,
}


def level_of(
    *,
    table: IsolationLevel,
    requested: IsolationLevel | None,
    operation: str,
    actions: Sequence[Action],
) -> IsolationLevel | Invalid:
    """The level to check a transaction at.

    `table` is the table's own level (after this commit), `requested` the proposal's, which may
    only be stricter. Snapshot isolation is taken where both of them allow it.
    """
    level = table if requested is None else requested
    if _STRICTNESS[level] < _STRICTNESS[table]:
        return Invalid(
            code=Code.INVALID_REQUEST,
            detail=f"isolation_level {level.value} is weaker than the table's {table.value}; "
            "a proposal may only ask for a stricter one",
        )
    if all(
        can_downgrade(candidate, operation=operation, actions=actions)
        for candidate in (table, level)
    ):
        return IsolationLevel.SNAPSHOT_ISOLATION
    return level


def can_downgrade(level: IsolationLevel, *, operation: str, actions: Sequence[Action]) -> bool:
    """Whether a transaction at this level may be checked under snapshot isolation.

    It may when no file action changes data and nothing but file actions is committed. Under
    WriteSerializable the operation must not be one that changes data, either: a DELETE that
    found no row has read the table all the same.
    """
    for action in actions:
        if not isinstance(action, Add | Remove | AddCDCFile) or action.data_change:
            return False
    return level is IsolationLevel.SERIALIZABLE or not operations.changes_data(operation)


def is_blind_append(reads: Reads, actions: Sequence[Action]) -> bool:
    """Whether a transaction depended on no file and each file action of it adds data.

    An add without data change has rows, or is of a file, that were read. An action of unknown kind
    might be a file action: with it the answer is no.
    """
    if not reads.nothing or has_any(actions, Remove, AddCDCFile, UnknownAction):
        return False
    return all(action.data_change for action in actions if isinstance(action, Add))


def is_blind_winner(winner: WinningCommit) -> bool:
    """Whether a winner's claim to be a blind append is believed.

    Nothing in a commit proves what its writer read, but a commit that removes files, changes
    the table itself or holds what nobody here understands was not written blindly.
    """
    return winner.is_blind_append and not (
        winner.removes or winner.metadata or winner.protocol or winner.unknown
    )


def may_skip(txn: PreparedTransaction) -> bool:
    """Whether an empty transaction may be left out of the log when its writer asks for that.

    Under WriteSerializable it is recorded, as Delta does.
    """
    return (
        txn.proposal.skip_if_empty
        and not txn.actions
        and txn.isolation_level is not IsolationLevel.WRITE_SERIALIZABLE
    )
