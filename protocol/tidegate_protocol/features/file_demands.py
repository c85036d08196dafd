"""What a change of protocol or metadata asks of every live file of the table."""

from collections.abc import Iterable, Sequence

from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.actions import Action, Add, Remove
from tidegate_protocol.log.paths import identity
from tidegate_protocol.log.statistics import FileStatistics, statistics_of
from tidegate_protocol.proposal.demands import Demand, FileDemand, NoNulls, Obeys
from tidegate_protocol.proposal.transaction import Invalid, PreparedTransaction

_OF_ROWS = (NoNulls, Obeys)


def first_violation(txn: PreparedTransaction, files: Iterable[Add]) -> tuple[Add, Demand] | None:
    """The first of the live files that is not as the transaction demands, and what of it is not.
    A file that the transaction removes is gone. Of one that it adds again, the new action has to
    meet the demands on rows."""
    for add in files:
        unmet = _unmet(txn.demands, add)
        if unmet is None:
            continue
        own = txn.made.of(txn.actions, _own_files).get(identity(add.path))
        if own is None:
            return add, unmet
        if isinstance(own, Add):
            unmet = _unmet([each for each in txn.demands if isinstance(each, _OF_ROWS)], own)
            if unmet is not None:
                return own, unmet
    return None


def _own_files(actions: Sequence[Action]) -> dict[str, Add | Remove]:
    """What becomes of each path: a file that is added again is there, whatever else is removed."""
    found: dict[str, Add | Remove] = {}
    for action in actions:
        if isinstance(action, Add):
            found[identity(action.path)] = action
        elif isinstance(action, Remove):
            found.setdefault(identity(action.path), action)
    return found


def _unmet(demands: Sequence[Demand], add: Add) -> Demand | None:
    # Once for all columns, of which there may be thousands.
    statistics = statistics_of(add.stats) if any(map(_asks_statistics, demands)) else None
    return next((demand for demand in demands if not _meets(demand, add, statistics)), None)


def _asks_statistics(demand: Demand) -> bool:
    return isinstance(demand, NoNulls)


def _meets(demand: Demand, add: Add, statistics: FileStatistics | None) -> bool:
    if isinstance(demand, NoNulls):
        return _has_no_nulls(add, demand.physical_path, statistics)
    if isinstance(demand, Obeys):
        return False
    ids = (add.base_row_id, add.default_row_commit_version)
    return {
        FileDemand.ROW_IDS: None not in ids,
        FileDemand.NO_ROW_IDS: ids == (None, None),
        FileDemand.NO_DELETION_VECTORS: add.deletion_vector is None,
        FileDemand.REWRITTEN: False,
    }[demand]


def _has_no_nulls(
    add: Add, physical_path: tuple[str, ...], statistics: FileStatistics | None
) -> bool:
    name = physical_path[0]
    if name in add.partition_values:
        return add.partition_values[name] is not None
    return statistics is not None and statistics.no_null(physical_path)


def check_live_files(txn: PreparedTransaction, files: Sequence[Add]) -> Invalid | None:
    """Why the transaction cannot be committed over these files, live at its read version."""
    violation = first_violation(txn, files)
    if violation is None:
        return None
    add, demand = violation
    return Invalid(
        code=Code.INVALID_ACTION,
        detail=f"the change needs that every file {demand}; that is not so of {add.path!r}: "
        f"{_next_step(demand)}",
        path=add.path,
    )


def _next_step(demand: Demand) -> str:
    match demand:
        case NoNulls():
            return "make the column NOT NULL once every file has statistics that show no null"
        case Obeys():
            return "read the whole table, and make the rule if no row breaks it"
    return "commit such files again first"
