"""The last step before a staged commit lands: that it is what it has to be, byte for byte.

Where the service completes a proposal, it can only check a staged commit: in-commit timestamp,
row ids, and what a metaData action needs beside it.
"""

from collections.abc import Sequence
from dataclasses import replace

from tidegate_protocol.base.problems import Code
from tidegate_protocol.features import row_tracking
from tidegate_protocol.features.row_tracking import InvalidHighWaterMark
from tidegate_protocol.log.actions import Action, Add, DomainMetadata, Metadata, Protocol
from tidegate_protocol.proposal.staged import StagedCommit
from tidegate_protocol.proposal.transaction import Invalid, PreparedTransaction, ReadyCommit


def complete_staged(
    txn: PreparedTransaction, staged: StagedCommit, *, previous_timestamp: int
) -> ReadyCommit | Invalid:
    """The commit of a transaction that was judged against every version before it, or why it
    cannot land as it is. `previous_timestamp` is that of the version before, in ms.

    Raises `ValueError` where the transaction was not judged against exactly these versions.
    """
    if staged.version != txn.checked_through + 1:
        raise ValueError(
            f"checked through version {txn.checked_through}, cannot land as {staged.version}"
        )
    invalid = (
        _check_timestamp(staged, previous_timestamp)
        or _check_changes(txn, staged)
        or _check_row_ids(txn, staged)
    )
    if invalid is not None:
        return invalid
    claims_blind = staged.commit_info.is_blind_append is True
    return ReadyCommit(
        version=staged.version,
        timestamp=staged.timestamp,
        content=staged.content,
        actions=staged.actions,
        transaction=replace(txn, is_blind_append=txn.is_blind_append and claims_blind),
        commit_info=staged.commit_info,
    )


def _check_timestamp(staged: StagedCommit, previous: int) -> Invalid | None:
    if staged.timestamp > previous:
        return None
    return _invalid(
        f"the inCommitTimestamp is {staged.timestamp}; expected one after that of the version "
        f"before, {previous}"
    )


def _check_changes(txn: PreparedTransaction, staged: StagedCommit) -> Invalid | None:
    """A proposal's protocol and metaData are completed; of a staged commit they are as they are."""
    given = [action for action in staged.actions if isinstance(action, Metadata | Protocol)]
    for action in txn.actions:
        if isinstance(action, Metadata | Protocol) and action not in given:
            kind = "metaData" if isinstance(action, Metadata) else "protocol"
            return Invalid(
                code=Code.INVALID_PROTOCOL,
                detail=f"the commit changes the table in a way that needs another {kind} action "
                "than it has",
            )
    return None


def _check_row_ids(txn: PreparedTransaction, staged: StagedCommit) -> Invalid | None:
    domains = [
        action
        for action in staged.actions
        if isinstance(action, DomainMetadata)
        and action.domain == row_tracking.DOMAIN
        and not action.removed
    ]
    if not txn.row_ids_released:
        if domains:
            return _invalid(
                f"the metadata domain {row_tracking.DOMAIN!r} is set, and the table gives out no "
                "row ids"
            )
        return None
    mark = txn.row_id_high_water_mark
    try:
        moved = row_tracking.moved_mark(domains, mark)
    except InvalidHighWaterMark as error:
        return _invalid(str(error))
    if moved < mark:
        return _invalid(f"the rowIdHighWaterMark goes back from {mark} to {moved}")
    return _check_ids(staged.actions, mark=mark, moved=moved, version=staged.version)


def _check_ids(actions: Sequence[Action], *, mark: int, moved: int, version: int) -> Invalid | None:
    given: list[tuple[int, int, Add]] = []
    for action in actions:
        if not isinstance(action, Add):
            continue
        base, since = action.base_row_id, action.default_row_commit_version
        if base is None or since is None or base < 0 or not 0 <= since <= version:
            return _of(
                action,
                f"has the baseRowId {base} and the defaultRowCommitVersion {since}; a table with "
                "row tracking needs both",
            )
        if base > mark:
            given.append((base, base + (row_tracking.row_count(action) or 0), action))
    end = mark + 1
    for base, until, action in sorted(given, key=lambda each: each[:2]):
        if base < end or until - 1 > moved:
            return _of(
                action,
                f"has row ids from {base} to {until - 1}, of which others are given out or which "
                f"the rowIdHighWaterMark {moved} does not cover",
            )
        end = max(end, until)
    return None


def _of(add: Add, what: str) -> Invalid:
    return Invalid(code=Code.INVALID_ACTION, detail=f"{add.path!r} {what}", path=add.path)


def _invalid(detail: str) -> Invalid:
    return Invalid(code=Code.INVALID_ACTION, detail=detail)
