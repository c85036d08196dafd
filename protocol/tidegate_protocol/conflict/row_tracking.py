"""The rules of row tracking (Delta: ConflictChecker.resolveRowTrackingBackfillConflicts,
resolveRowTrackingUnBackfillConflicts, reassignOverlappingRowIds).

Files may be committed again for nothing but row ids: a backfill gives them to all files of a
table, an unbackfill takes them away. Neither may bring back a file that others removed, and nobody
else's files may lose the ids that a backfill gave them.
"""

from collections.abc import Sequence
from dataclasses import replace

from tidegate_protocol.base.problems import Code
from tidegate_protocol.conflict.answer import conflict
from tidegate_protocol.features import row_tracking, table_features
from tidegate_protocol.features.file_demands import first_violation
from tidegate_protocol.features.known import ROW_TRACKING
from tidegate_protocol.log.actions import Action, Add, AddCDCFile, Remove
from tidegate_protocol.log.codec import with_fields
from tidegate_protocol.log.paths import identity
from tidegate_protocol.proposal import operations
from tidegate_protocol.proposal.demands import FileDemand
from tidegate_protocol.proposal.transaction import (
    Conflict,
    Invalid,
    PreparedTransaction,
    WinningCommit,
)


def row_tracking_rule(
    txn: PreparedTransaction, winner: WinningCommit
) -> PreparedTransaction | Conflict:
    """The transaction with the row ids that it would have, had it read the winner.

    New ids are given out when it lands; here the highest id in use is moved, and files that a
    backfill is about take over what the other side did to them.
    """
    mark = row_tracking.moved_mark(winner.domains, txn.row_id_high_water_mark)
    if mark != txn.row_id_high_water_mark:
        txn = replace(txn, row_id_high_water_mark=mark)
    if _takes_row_ids_away(txn):
        return _unbackfilled(txn, winner)
    if not table_features.supports(txn.protocol, ROW_TRACKING):
        return txn
    freed = _released(txn, winner)
    if isinstance(freed, Conflict):
        return freed
    txn = freed
    if txn.proposal.operation == operations.ROW_TRACKING_BACKFILL:
        txn = _without_files_of(txn, winner)
    if winner.operation == operations.ROW_TRACKING_BACKFILL:
        txn = replace(txn, actions=_with_backfilled_ids(txn.actions, winner))
    return txn


def demands_rule(txn: PreparedTransaction, winner: WinningCommit) -> PreparedTransaction | Conflict:
    """What the transaction makes of the table must suit the files that were added meanwhile."""
    violation = first_violation(txn, winner.adds) if txn.demands else None
    if violation is None:
        return txn
    add, demand = violation
    what = f"added {add.path!r}, but the transaction needs that every file {demand}"
    return conflict(Code.PROTOCOL_CHANGED, winner, what, path=add.path)


def only_row_ids(operation: str | None, actions: Sequence[Action]) -> bool:
    """Whether a commit of this name and these file actions changes nothing but row ids."""
    return operation in (
        operations.ROW_TRACKING_BACKFILL,
        operations.ROW_TRACKING_UNBACKFILL,
    ) and not any(
        isinstance(action, Remove | AddCDCFile) or (isinstance(action, Add) and action.data_change)
        for action in actions
    )


def _takes_row_ids_away(txn: PreparedTransaction) -> bool:
    if FileDemand.NO_ROW_IDS in txn.demands:
        return True
    named_so = txn.proposal.operation == operations.ROW_TRACKING_UNBACKFILL
    return named_so and table_features.supports(txn.protocol, ROW_TRACKING)


def _unbackfilled(
    txn: PreparedTransaction, winner: WinningCommit
) -> PreparedTransaction | Conflict:
    """The files that the winner added with row ids are committed once more without them."""
    if winner.operation == operations.ROW_TRACKING_BACKFILL:
        what = "gave row ids to the table's files, which this transaction takes away"
        return conflict(Code.PROTOCOL_CHANGED, winner, what)
    txn = _without_files_of(txn, winner)
    bare = tuple(
        with_fields(add, {"baseRowId": None, "defaultRowCommitVersion": None, "dataChange": False})
        for add in winner.adds
        if add.base_row_id is not None or add.default_row_commit_version is not None
    )
    return replace(txn, actions=(*txn.actions, *bare))


def _without_files_of(txn: PreparedTransaction, winner: WinningCommit) -> PreparedTransaction:
    """Files that the winner committed again or removed are none of the transaction's business."""
    files: tuple[Add | Remove, ...] = (*winner.adds, *winner.removes)
    theirs = {identity(action.path) for action in files}
    kept = tuple(
        action
        for action in txn.actions
        if not isinstance(action, Add) or identity(action.path) not in theirs
    )
    return replace(txn, actions=kept, excused_reads=txn.excused_reads | theirs)


def _with_backfilled_ids(actions: Sequence[Action], winner: WinningCommit) -> tuple[Action, ...]:
    theirs = {identity(add.path): add for add in winner.adds}
    return tuple(
        _like(action, theirs[identity(action.path)])
        if isinstance(action, Add | Remove) and identity(action.path) in theirs
        else action
        for action in actions
    )


def _like(action: Add | Remove, backfilled: Add) -> Add | Remove:
    return with_fields(
        action,
        {
            "baseRowId": backfilled.base_row_id,
            "defaultRowCommitVersion": backfilled.default_row_commit_version,
        },
    )


def _released(txn: PreparedTransaction, winner: WinningCommit) -> PreparedTransaction | Conflict:
    """The transaction ready for row ids, which the table supports, also where the winner introduced
    them."""
    if txn.row_ids_released or txn.made.of(txn.metadata, row_tracking.asks_suspension):
        return txn
    freed = row_tracking.released(
        txn.actions, mark=row_tracking.NO_ROW_IDS, read_version=txn.read.version
    )
    if isinstance(freed, Invalid):
        what = f"introduced row tracking, but {freed.detail}"
        return conflict(Code.PROTOCOL_CHANGED, winner, what, path=freed.path)
    return replace(txn, actions=freed, row_ids_released=True)
