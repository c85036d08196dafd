"""What a change of protocol or metadata asks of every live file of the table."""

from collections.abc import Iterable, Sequence

from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.actions import Action, Add, Remove
from tidegate_protocol.log.paths import identity
from tidegate_protocol.log.statistics import FileStatistics, statistics_of
from tidegate_protocol.proposal.transaction import (
    Demand,
    FileDemand,
    Invalid,
    NoNulls,
    Obeys,
    PreparedTransaction,
)


def first_violation(
    demands: Sequence[Demand], files: Iterable[Add], actions: Sequence[Action]
) -> tuple[Add, Demand] | None:
    """The first of the live files that is not as demanded, and what of it is not; those that the
    actions remove or commit again are checked by what becomes of them."""
    replaced: set[str] | None = None
    for add in files:
        unmet = _unmet(demands, add)
        if unmet is None:
            continue
        if replaced is None:
            replaced = {identity(a.path) for a in actions if isinstance(a, Add | Remove)}
        if identity(add.path) not in replaced:
            return add, unmet
    return None


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
    violation = first_violation(txn.demands, files, txn.actions)
    if violation is None:
        return None
    add, demand = violation
    detail = (
        f"nothing says that the rows of {add.path!r} obey {demand.rule}, which is new; read the "
        "whole table (reads.whole_table), and make it a rule where no row breaks it"
        if isinstance(demand, Obeys)
        else f"the change needs that every file {demand}, but {add.path!r} does not; commit such "
        "files again first"
    )
    return Invalid(code=Code.INVALID_ACTION, detail=detail, path=add.path)
