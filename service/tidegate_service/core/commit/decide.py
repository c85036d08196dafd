"""Deciding a proposal on a locked table: the pure rules, with what the index holds."""

from dataclasses import replace
from functools import partial

from tidegate_protocol.base.problems import Code
from tidegate_protocol.features.file_demands import check_live_files
from tidegate_protocol.log.paths import identity
from tidegate_protocol.prepare.finalize import complete
from tidegate_protocol.prepare.staged import complete_staged
from tidegate_protocol.proposal.staged import StagedCommit
from tidegate_protocol.proposal.transaction import (
    Conflict,
    Invalid,
    PreparedTransaction,
    Proposal,
    ReadyCommit,
)
from tidegate_service.core.commit.assumptions import check_assumptions
from tidegate_service.core.commit.early_check import EarlyCheck, lacks_history
from tidegate_service.core.commit.preparation import (
    Empty,
    assumptions_in,
    long,
    own_weight,
    prepared,
)
from tidegate_service.core.errors import NotFound, Refused
from tidegate_service.core.instance.locked_table import LockedTable, ManyWinners
from tidegate_service.core.observe.faults import NO_FAULTS, FaultPoints, around
from tidegate_service.core.ports.index import CommitSection, TakesLong
from tidegate_service.core.ports.records import TableHead
from tidegate_service.core.sharing import offload

LONGEST_LOCKED = 100_000
FEW_WINNERS = 16
"""A check of more weight, in actions, by more winners is made before the lock."""

Decision = ReadyCommit | Empty | Conflict | Invalid


async def decide(
    locked: LockedTable,
    proposal: Proposal,
    *,
    early: EarlyCheck | None = None,
    faults: FaultPoints = NO_FAULTS,
) -> Decision:
    """The decision on the proposal by the log up to the locked head (docs/architecture.md, "A
    commit's way"). What was checked `early`, before the lock, is not checked again.

    Raises `NotFound` for a read version that does not exist yet. Raises `Refused`
    (`read-version-too-old`) where the index no longer reaches back to the read version. Raises
    `ManyWinners` where too much was committed since, and `TakesLong` where the tables of others
    should not wait.
    """
    section = locked.section
    steps = section.table.kind.steps
    async with around(faults, steps.decide):
        checked = await _checked(locked, proposal, early)
    if not isinstance(checked, PreparedTransaction):
        return checked
    weight = max(len(checked.actions), offload.weight_of(proposal), long(checked.metadata))
    async with around(faults, steps.compose):
        return await offload.run(
            weight,
            partial(_completed, checked, section),
        )


def _completed(checked: PreparedTransaction, section: CommitSection) -> ReadyCommit | Invalid:
    head, now_ms = section.table, section.now_ms
    version, before = head.latest_version + 1, head.latest_timestamp
    if checked.proposal.staged is not None:
        return complete_staged(checked, checked.proposal.staged, previous_timestamp=before)
    return complete(checked, version=version, now_ms=now_ms, previous_timestamp=before)


async def _checked(
    locked: LockedTable, proposal: Proposal, early: EarlyCheck | None
) -> PreparedTransaction | Empty | Conflict | Invalid:
    section, table = locked.section, locked.section.table
    read_version = table.latest_version if proposal.read_version is None else proposal.read_version
    _check_read_version(table, read_version)
    if proposal.staged is not None:
        _check_next(proposal.staged, table)
    if proposal.weight >= offload.LONG:
        # A long decision keeps the transaction idle: the database has to allow more time.
        await section.take_time()
    if early is not None and early.is_of(section):
        begun, assumptions = early.outcome, early.assumptions
        if isinstance(begun, Refused):
            raise begun
        if locked.shared and assumptions.count >= offload.LONG:
            raise TakesLong
    else:
        begun = await _begun(locked, proposal, read_version)
        assumptions = await assumptions_in(begun)
    invalid = await check_assumptions(section, proposal, assumptions, read_version)
    if invalid is not None:
        return invalid
    if isinstance(begun, PreparedTransaction):
        begun = await _past_winners(locked, begun)
    if isinstance(begun, Conflict):
        return await _with_partition(section, read_version, begun)
    if not isinstance(begun, PreparedTransaction):
        return begun
    # Last, since it reads all files of the table.
    return await _check_live_files(section, begun) or begun


def _check_read_version(table: TableHead, read_version: int) -> None:
    """Raise `NotFound` or `Refused` unless the index has the version."""
    if read_version > table.latest_version:
        raise NotFound(
            f"read_version {read_version} does not exist; "
            f"the latest version of {table.name} is {table.latest_version}",
            code=Code.VERSION_NOT_FOUND,
        )
    if read_version < 0:
        raise Refused(
            f"read_version {read_version} says that there was no table, but {table.name} exists "
            f"at version {table.latest_version}; tables are created by POST /tables",
            code=Code.TABLE_EXISTS,
        )
    if read_version < table.first_version:
        raise lacks_history(table, read_version)


async def _begun(
    locked: LockedTable, proposal: Proposal, read_version: int
) -> PreparedTransaction | Empty | Invalid:
    state = await locked.state_at(read_version)
    if state is None:
        raise lacks_history(locked.section.table, read_version)
    if own_weight(proposal, state) >= offload.LONG and locked.shared:
        raise TakesLong
    return await prepared(proposal, state, locked.limits)


async def _past_winners(
    locked: LockedTable, txn: PreparedTransaction
) -> PreparedTransaction | Conflict:
    """The transaction past every commit up to the locked head that it is not checked against."""
    own = own_weight(txn.proposal, txn.read)
    if locked.shared and (txn.demands or own >= offload.LONG):
        raise TakesLong
    if not await locked.reaches(txn.checked_through):
        raise lacks_history(locked.section.table, txn.read.version)
    weight = max(locked.weight_of(txn) + len(txn.actions), own)
    if locked.shared and weight >= offload.HEAVY:
        # In a thread, beside its caller's other work, it would hold up the tables of others.
        raise TakesLong
    if weight > LONGEST_LOCKED and locked.head - txn.checked_through > FEW_WINNERS:
        raise ManyWinners
    if weight >= offload.LONG:
        await locked.section.take_time()
    return await offload.run(weight, locked.check_conflicts, txn)


def _check_next(staged: StagedCommit, table: TableHead) -> None:
    """Raise `Refused` unless a staged commit is for the table's next version."""
    if staged.version <= table.latest_version:
        raise Refused(
            f"version {staged.version} of {table.name} is another commit; the latest version is "
            f"{table.latest_version}",
            code=Code.VERSION_TAKEN,
            hint="read the table again, check for conflicts, and stage it as the next version",
        )


async def _check_live_files(
    section: CommitSection, prepared: PreparedTransaction
) -> Invalid | None:
    """Why the transaction is invalid for the table's live files, if it makes demands on them."""
    if prepared.demands:
        async for files in section.live_files(prepared.read.version):
            weight = len(prepared.demands) * len(files) + len(prepared.actions)
            invalid = await offload.run(weight, check_live_files, prepared, files)
            if invalid is not None:
                return invalid
    return None


async def _with_partition(
    section: CommitSection, read_version: int, conflict: Conflict
) -> Conflict:
    """The conflict with the partition of the file that was read, for its hint. The partition is
    taken from the snapshot at the read version, since the winner's remove need not repeat it."""
    if conflict.read_file is None:
        return conflict
    path = identity(conflict.read_file)
    values = await section.partition_values(path, read_version, vector=conflict.read_vector)
    return replace(conflict, partition=values or None, read_file=None, read_vector=None)
