"""Deciding a proposal on a locked table: the pure rules, with what the index holds."""

from dataclasses import dataclass, replace
from functools import partial

from tidegate_protocol.base.problems import Code
from tidegate_protocol.features.file_demands import check_live_files
from tidegate_protocol.features.known import ROW_TRACKING
from tidegate_protocol.features.table_features import supports
from tidegate_protocol.log.actions import Metadata
from tidegate_protocol.log.paths import identity
from tidegate_protocol.prepare.finalize import complete
from tidegate_protocol.prepare.prepare import prepare
from tidegate_protocol.prepare.staged import complete_staged
from tidegate_protocol.prepare.table import is_cheap
from tidegate_protocol.proposal.isolation import may_skip
from tidegate_protocol.proposal.staged import StagedCommit
from tidegate_protocol.proposal.transaction import (
    Conflict,
    Invalid,
    PreparedTransaction,
    Proposal,
    ReadState,
    ReadyCommit,
)
from tidegate_protocol.scan.reads import is_parsed
from tidegate_service.core.errors import NotFound, Refused
from tidegate_service.core.instance.locked_table import LockedTable
from tidegate_service.core.observe.faults import NO_FAULTS, FaultPoints, around, steps_of
from tidegate_service.core.ports.index import CommitSection, TakesLong
from tidegate_service.core.ports.records import TableHead
from tidegate_service.core.sharing import offload

MOST_WITH_ROW_IDS = 250_000
LONG_METADATA_OF_TABLE = 64 * 1024
"""In bytes of the table's own metadata. Looking at more of it takes long, parsed or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Empty:
    """The proposal has no actions, and asked to write no commit in that case. Delta decides this
    before it checks conflicts."""

    read_version: int


Decision = ReadyCommit | Empty | Conflict | Invalid


async def decide(
    locked: LockedTable, proposal: Proposal, *, faults: FaultPoints = NO_FAULTS
) -> Decision:
    """The decision on the proposal by the log up to the locked head (docs/architecture.md, "A
    commit's way").

    Raises `NotFound` for a read version that does not exist yet. Raises `Refused`
    (`read-version-too-old`) where the index no longer reaches back to the read version, or too much
    was committed since. Raises `TakesLong` where others should not wait for a long read.
    """
    section = locked.section
    steps = steps_of(section.table.catalog_managed)
    async with around(faults, steps.decide):
        checked = await _checked(locked, proposal)
    if not isinstance(checked, PreparedTransaction):
        return checked
    weight = max(len(checked.actions), offload.weight_of(proposal), _long(checked.metadata))
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
    locked: LockedTable, proposal: Proposal
) -> PreparedTransaction | Empty | Conflict | Invalid:
    section, table = locked.section, locked.section.table
    read_version = table.latest_version if proposal.read_version is None else proposal.read_version
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
    if proposal.staged is not None:
        _check_next(proposal.staged, table)
    try:
        state = await locked.state_at(read_version)
    except TakesLong:
        if locked.shared:
            raise
        raise Refused(
            f"the commits to {table.name} since version {read_version} are more than "
            f"{locked.most_bytes} bytes, or {locked.most_commits}, which are as many as are looked "
            "through for a proposal",
            code=Code.READ_VERSION_TOO_OLD,
            hint=f"read the table again at version {table.latest_version} and propose anew",
        ) from None
    if state is None:
        raise Refused(
            f"the index no longer holds the history of {table.name} since version "
            f"{read_version}, so conflicts cannot be ruled out",
            code=Code.READ_VERSION_TOO_OLD,
            hint=f"read the table again at version {table.latest_version} and propose anew",
        )
    if proposal.weight >= offload.LONG:
        # A long decision keeps the transaction idle: the database has to allow more time.
        await section.take_time()
    _check_assignable(proposal, state)
    own_weight = max(
        offload.weight_of(proposal), _long(state.metadata), _unread(proposal, state.metadata)
    )
    if own_weight >= offload.LONG and locked.shared:
        raise TakesLong
    prepared = await offload.run(own_weight, prepare, proposal, state)
    if isinstance(prepared, Invalid):
        return prepared
    invalid = _check_hooks(locked, prepared)
    if invalid is not None:
        return invalid
    if may_skip(prepared):
        return Empty(read_version=read_version)
    if prepared.demands and locked.shared:
        raise TakesLong
    weight = max(locked.weight_of(prepared) + len(prepared.actions), own_weight)
    checked = await offload.run(weight, locked.check_conflicts, prepared)
    if isinstance(checked, Conflict):
        return await _with_partition(section, prepared, checked)
    # Last, since it reads all files of the table.
    return await _check_live_files(section, prepared) or checked


def _check_next(staged: StagedCommit, table: TableHead) -> None:
    """Raise `Refused` unless a staged commit is for the next version of a table that takes such."""
    if not table.catalog_managed:
        raise Refused(
            f"table {table.name} is not catalog-managed and takes no staged commits",
            code=Code.UNSUPPORTED_FEATURE,
        )
    if staged.version <= table.latest_version:
        raise Refused(
            f"version {staged.version} of {table.name} is another commit; the latest version is "
            f"{table.latest_version}",
            code=Code.VERSION_TAKEN,
            hint="read the table again, check for conflicts, and stage it as the next version",
        )


def _long(metadata: Metadata | None) -> int:
    """How heavy the table's own metadata is, of which less is looked at than of a proposal's."""
    if metadata is None:
        return 0
    is_long = len(metadata.raw) > LONG_METADATA_OF_TABLE or not is_cheap(metadata)
    return offload.LONG if is_long else 0


def _unread(proposal: Proposal, metadata: Metadata | None) -> int:
    """How heavy it is to parse the proposal's long predicates, where that was not done before: the
    index did not have the read version yet. Without a read version none is parsed at all."""
    if metadata is None or proposal.read_version is None or not proposal.reads.is_long:
        return 0
    return 0 if is_parsed(proposal.reads, metadata) else offload.LONG


def _check_hooks(locked: LockedTable, prepared: PreparedTransaction) -> Invalid | None:
    if not prepared.metadata_changed:
        return None
    before = prepared.read.metadata
    known = {} if before is None else before.configuration
    reason = locked.why_not_hooks(prepared.metadata.configuration, known)
    return None if reason is None else Invalid(code=Code.INVALID_ACTION, detail=reason)


def _check_assignable(proposal: Proposal, state: ReadState) -> None:
    """Refuse more actions than can be given row ids: an action with its row ids written in stays
    whole in memory."""
    count = len(proposal.actions)
    if count <= MOST_WITH_ROW_IDS or state.protocol is None:
        return
    if supports(state.protocol, ROW_TRACKING):
        raise Refused(
            f"there are {count} actions; a table with row tracking takes at most "
            f"{MOST_WITH_ROW_IDS} in a commit",
            code=Code.TOO_LARGE,
            hint="split the work into several transactions",
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
    section: CommitSection, prepared: PreparedTransaction, conflict: Conflict
) -> Conflict:
    """The conflict with the partition of the file that was read, for its hint. The partition is
    taken from the snapshot at the read version, since the winner's remove need not repeat it."""
    if conflict.read_file is None:
        return conflict
    values = await section.partition_values(identity(conflict.read_file), prepared.read.version)
    return replace(conflict, partition=values or None, read_file=None)
