"""From a proposal to a transaction that may be checked for conflicts.

Everything that Delta's `commitImpl` and `prepareCommit` refuse before looking at any other
commit is refused here, as a value. The first thing wrong is the answer, in this order: the kinds
of action, application transactions, protocol and metadata, files, domains, reads, isolation.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from tidegate_protocol.base.problems import Code
from tidegate_protocol.features import row_tracking, table_features
from tidegate_protocol.log.actions import (
    Action,
    Add,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    Txn,
    UnknownAction,
    classes,
    has_any,
)
from tidegate_protocol.prepare.features import complete_features
from tidegate_protocol.prepare.files import check_adds_alone, check_files
from tidegate_protocol.prepare.live_files import assumptions_of, check_assumptions
from tidegate_protocol.prepare.system_domains import check_domain
from tidegate_protocol.prepare.table import TableAfter, define_table
from tidegate_protocol.proposal import isolation
from tidegate_protocol.proposal.transaction import Invalid, PreparedTransaction, Proposal, ReadState
from tidegate_protocol.scan.predicates import InvalidPredicate, go_on
from tidegate_protocol.scan.reads import ReadPredicates
from tidegate_protocol.schema.table_schema import InvalidSchema

# They describe a checkpoint's contents and have no meaning in a commit (PROTOCOL.md, "V2 Spec").
_CHECKPOINT_KINDS = frozenset({"checkpointMetadata", "sidecar"})


def prepare(
    proposal: Proposal, read: ReadState, *, pause: Callable[[], None] = go_on
) -> PreparedTransaction | Invalid:
    """The transaction that the proposal is, at the version it read.

    `read` is the table at `proposal.read_version`, or at the head where that is None; version
    -1 with neither protocol nor metadata where there is no table yet. `pause` is called every few
    microseconds while expressions and predicates are read. Raises `ValueError` where `read` is of
    another version than the proposal's.
    """
    if proposal.read_version not in (None, read.version):
        raise ValueError(f"read version {proposal.read_version}, but state of {read.version}")
    invalid = _check_read_version(proposal) or _check_kinds(proposal.actions)
    if invalid is not None:
        return invalid
    actions = _distinct_txns(proposal.actions)
    if isinstance(actions, Invalid):
        return actions
    table = define_table(proposal, read)
    if not isinstance(table, Invalid):
        table = complete_features(table, proposal=proposal, read=read, pause=pause)
    if isinstance(table, Invalid):
        return table
    invalid = check_files(
        proposal.actions, table=table, read=read, operation=proposal.operation
    ) or _check_domains(proposal.actions, table)
    if invalid is None and read.metadata is None:
        assumed = assumptions_of(proposal.actions, vectors=False)
        broken = assumed.broken(())
        invalid = check_assumptions(proposal.actions, assumed, broken, version=read.version)
    if invalid is not None:
        return invalid
    read_filter = _read_filter(proposal, read, table, pause)
    if isinstance(read_filter, Invalid):
        return read_filter
    prepared = actions
    if table.changes or has_any(actions, Metadata, Protocol):
        prepared = (
            *table.changes,
            *(action for action in actions if not isinstance(action, Metadata | Protocol)),
        )
    counted = row_tracking.assigns(table.protocol, table.metadata)
    if counted:
        released = row_tracking.released(
            prepared, mark=read.row_id_high_water_mark, read_version=read.version
        )
        if isinstance(released, Invalid):
            return _of_proposal(released, prepared, proposal)
        prepared = released
    level = isolation.level_of(
        table=table.properties.isolation_level,
        requested=proposal.isolation_level,
        operation=proposal.operation,
        actions=prepared,
    )
    if isinstance(level, Invalid):
        return level
    return PreparedTransaction(
        proposal=proposal,
        read=read,
        actions=prepared,
        protocol=table.protocol,
        metadata=table.metadata,
        metadata_changed=table.own_metadata is not None,
        isolation_level=level,
        is_blind_append=isolation.is_blind_append(proposal.reads, prepared),
        read_filter=read_filter,
        checked_through=read.version,
        row_id_high_water_mark=read.row_id_high_water_mark,
        row_ids_released=counted,
        demands=table.demands,
    )


def is_invalid_at_any_version(proposal: Proposal) -> bool:
    """Whether `prepare` finds a proposal without a read version invalid whatever the table is: for
    what its actions are in themselves or beside each other."""
    if _check_read_version(proposal) or _check_kinds(proposal.actions):
        return True
    return (
        isinstance(_distinct_txns(proposal.actions), Invalid)
        or check_adds_alone(proposal.actions) is not None
    )


def _of_proposal(invalid: Invalid, actions: Sequence[Action], proposal: Proposal) -> Invalid:
    """The same about an action of these, told by its place in the proposal."""
    if invalid.action_index is None:
        return invalid
    index = proposal.actions.index(actions[invalid.action_index])
    return replace(invalid, action_index=index)


def _check_read_version(proposal: Proposal) -> Invalid | None:
    """Only what depends on no version may leave the version out."""
    if proposal.read_version is not None:
        return None
    only_appends = all(issubclass(kind, (Add, Txn)) for kind in classes(proposal.actions))
    blind = only_appends and isolation.is_blind_append(proposal.reads, proposal.actions)
    if blind and not proposal.reads.app_ids:
        return None
    return Invalid(
        code=Code.INVALID_REQUEST,
        detail="read_version is needed: only a proposal that read nothing and holds only txn "
        "actions and adds with dataChange = true can be judged at the table's latest version",
    )


def _check_kinds(actions: Sequence[Action]) -> Invalid | None:
    if not has_any(actions, CommitInfo, UnknownAction, Txn):
        return None
    for index, action in enumerate(actions):
        detail = None
        match action:
            case CommitInfo():
                detail = "a commitInfo action; the service writes it, from the proposal's fields"
            case UnknownAction(kind=kind) if kind in _CHECKPOINT_KINDS:
                detail = f"a {kind} action belongs into a checkpoint, not into a commit"
            case Txn(app_id=app_id, version=version) if version < 0:
                detail = f"txn {app_id!r} has version {version}; expected 0 or more"
        if detail is not None:
            return Invalid(code=Code.INVALID_ACTION, detail=detail, action_index=index)
    return None


def _distinct_txns(actions: Sequence[Action]) -> tuple[Action, ...] | Invalid:
    """The actions with each application's txn once; two that disagree are invalid."""
    if not has_any(actions, Txn):
        return tuple(actions)
    versions: dict[str, int] = {}
    kept: list[Action] = []
    for index, action in enumerate(actions):
        if isinstance(action, Txn) and action.app_id in versions:
            known = versions[action.app_id]
            if known != action.version:
                return Invalid(
                    code=Code.SET_TRANSACTION_CONFLICT,
                    detail=f"txn {action.app_id!r} has versions {known} and {action.version}",
                    action_index=index,
                )
            continue
        if isinstance(action, Txn):
            versions[action.app_id] = action.version
        kept.append(action)
    return tuple(kept)


def _check_domains(actions: Sequence[Action], table: TableAfter) -> Invalid | None:
    if not has_any(actions, DomainMetadata):
        return None
    seen: set[str] = set()
    for index, action in enumerate(actions):
        if not isinstance(action, DomainMetadata):
            continue
        if action.domain in seen:
            return Invalid(
                code=Code.INVALID_ACTION,
                detail=f"the metadata domain {action.domain!r} appears twice in one commit",
                action_index=index,
            )
        seen.add(action.domain)
        invalid = check_domain(action, table)
        if invalid is not None:
            return replace(invalid, action_index=index)
        if not table_features.supports(table.protocol, "domainMetadata"):
            return Invalid(
                code=Code.UNSUPPORTED_FEATURE,
                detail="domainMetadata actions need the feature domainMetadata in the protocol",
                action_index=index,
            )
    return None


def _read_filter(
    proposal: Proposal, read: ReadState, table: TableAfter, pause: Callable[[], None]
) -> ReadPredicates | Invalid:
    """The reads, over the schema and partition columns of the version that was read; a table
    that did not exist yet had none."""
    try:
        if read.metadata is None:
            return ReadPredicates.parse(proposal.reads, table.schema, (), pause=pause)
        return ReadPredicates.over(proposal.reads, read.metadata, pause=pause)
    except InvalidPredicate as error:
        return Invalid(code=Code.INVALID_PREDICATE, detail=str(error))
    except InvalidSchema as error:
        return Invalid(code=Code.INVALID_SCHEMA, detail=str(error))
