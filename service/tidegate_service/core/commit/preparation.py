"""A proposal as a transaction of the table that it read, before any check for conflicts."""

from dataclasses import dataclass

from tidegate_protocol.base.problems import Code
from tidegate_protocol.features.known import ROW_TRACKING
from tidegate_protocol.features.table_features import supports
from tidegate_protocol.log.actions import Metadata
from tidegate_protocol.prepare.live_files import FileAssumptions, assumptions_of_transaction
from tidegate_protocol.prepare.prepare import prepare
from tidegate_protocol.prepare.table import is_cheap
from tidegate_protocol.proposal.isolation import may_skip
from tidegate_protocol.proposal.transaction import (
    Invalid,
    PreparedTransaction,
    Proposal,
    ReadState,
)
from tidegate_protocol.scan.reads import is_parsed
from tidegate_service.core.errors import Refused
from tidegate_service.core.limits import CommitLimits
from tidegate_service.core.sharing import offload
from tidegate_service.core.sharing.pools import Rests

MOST_WITH_ROW_IDS = 250_000
LONG_METADATA_OF_TABLE = 64 * 1024
"""In bytes of the table's own metadata. Looking at more of it takes long, parsed or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Empty:
    """The proposal has no actions, and asked to write no commit in that case. Delta decides this
    before it checks conflicts."""

    read_version: int


async def prepared(
    proposal: Proposal, state: ReadState, limits: CommitLimits
) -> PreparedTransaction | Empty | Invalid:
    """The transaction, of which no conflict is known yet. Raises `Refused` (`too-large`)."""
    _check_assignable(proposal, state)
    weight = own_weight(proposal, state)
    found = await offload.run(
        weight, prepare if weight < offload.HEAVY else _prepare_resting, proposal, state
    )
    if isinstance(found, Invalid):
        return found
    if found.metadata_changed:
        before = {} if state.metadata is None else state.metadata.configuration
        reason = limits.why_not_hooks(found.metadata.configuration, before)
        if reason is not None:
            return Invalid(code=Code.INVALID_ACTION, detail=reason)
    return Empty(read_version=state.version) if may_skip(found) else found


def _prepare_resting(proposal: Proposal, state: ReadState) -> PreparedTransaction | Invalid:
    """In a thread: expressions of thousands of characters take hundreds of milliseconds."""
    return prepare(proposal, state, pause=Rests())


async def assumptions_in(txn: object) -> FileAssumptions:
    """The assumptions of a transaction; none of what never was one."""
    if not isinstance(txn, PreparedTransaction):
        return FileAssumptions()
    return await offload.run(len(txn.actions), assumptions_of_transaction, txn)


def own_weight(proposal: Proposal, state: ReadState) -> int:
    """How heavy a proposal is by itself, in actions, for a table that is as it read it."""
    metadata = state.metadata
    return max(offload.weight_of(proposal), long(metadata), _unread(proposal, metadata))


def long(metadata: Metadata | None) -> int:
    """How heavy the table's own metadata is. Less of it is looked at than of a proposal's."""
    if metadata is None:
        return 0
    is_long = len(metadata.raw) > LONG_METADATA_OF_TABLE or not is_cheap(metadata)
    return offload.LONG if is_long else 0


def _unread(proposal: Proposal, metadata: Metadata | None) -> int:
    """How heavy it is to parse the proposal's long predicates. 0 where they are parsed already,
    which takes that the index had the read version; without a read version none is parsed."""
    if metadata is None or proposal.read_version is None or not proposal.reads.is_long:
        return 0
    return 0 if is_parsed(proposal.reads, metadata) else offload.LONG


def _check_assignable(proposal: Proposal, state: ReadState) -> None:
    """Refuse more actions than can be given row ids: an action that row ids are written into stays
    in memory as a whole."""
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
