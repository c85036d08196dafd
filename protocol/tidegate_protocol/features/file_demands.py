"""What a change of protocol or metadata asks of every live file of the table."""

from collections.abc import Iterable, Sequence

from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.actions import Action, Add, Remove
from tidegate_protocol.log.paths import decode
from tidegate_protocol.log.statistics import statistics_of
from tidegate_protocol.proposal.transaction import (
    Demand,
    FileDemand,
    Invalid,
    NoNulls,
    PreparedTransaction,
)


def first_violation(demand: Demand, files: Iterable[Add], actions: Sequence[Action]) -> Add | None:
    """The first of the live files that is not as demanded; those that the actions remove or
    commit again are judged by what becomes of them."""
    replaced = {decode(action.path) for action in actions if isinstance(action, Add | Remove)}
    return next(
        (add for add in files if not meets(demand, add) and decode(add.path) not in replaced), None
    )


def meets(demand: Demand, add: Add) -> bool:
    """Whether a live file is as demanded."""
    if isinstance(demand, NoNulls):
        return _has_no_nulls(add, demand.physical_path)
    ids = (add.base_row_id, add.default_row_commit_version)
    return {
        FileDemand.ROW_IDS: None not in ids,
        FileDemand.NO_ROW_IDS: ids == (None, None),
        FileDemand.NO_DELETION_VECTORS: add.deletion_vector is None,
        FileDemand.REWRITTEN: False,
    }[demand]


def _has_no_nulls(add: Add, physical_path: tuple[str, ...]) -> bool:
    name = physical_path[0]
    if name in add.partition_values:
        return add.partition_values[name] is not None
    stats = statistics_of(add.stats)
    return stats is not None and stats.null_count(physical_path) == 0


def check_live_files(txn: PreparedTransaction, files: Sequence[Add]) -> Invalid | None:
    """Why the transaction cannot be committed over these files, live at its read version."""
    for demand in txn.demands:
        violation = first_violation(demand, files, txn.actions)
        if violation is not None:
            return Invalid(
                code=Code.INVALID_ACTION,
                detail=f"the change needs that every file {demand}, but {violation.path!r} does "
                "not; commit such files again first",
                path=violation.path,
            )
    return None
