"""Staged commits as values: what a file of `_staged_commits` says, and the proposal that it is."""

import re

import msgspec

from tidegate_protocol.base.problems import Code
from tidegate_protocol.base.text import excerpt
from tidegate_protocol.features.row_tracking import DOMAIN
from tidegate_protocol.log.actions import Action, CommitInfo, DomainMetadata
from tidegate_protocol.log.content import LogFile
from tidegate_protocol.log.file_names import staged_version
from tidegate_protocol.proposal.staged import StagedCommit
from tidegate_protocol.proposal.transaction import Invalid, Proposal
from tidegate_protocol.replay.commits import MAX_TIMESTAMP, UnreadableCommit, parse_commit

UNKNOWN_OPERATION = "UNKNOWN"
"""The operation of a commit whose commitInfo names none."""

_TRANSACTION_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}\Z")
_COMMIT_INFO = msgspec.json.Decoder(dict[str, dict[str, msgspec.Raw]])
_OWN_MARK = "tidegate"


def read_staged(name: str, content: bytes | LogFile) -> StagedCommit | Invalid:
    """The commit that a staged file is, or why it is none. The name is of the form that
    `file_names.staged_version` knows; raises `ValueError` for any other."""
    version = staged_version(name)
    if version is None:
        raise ValueError(f"{excerpt(name)} is no staged commit's name")
    return read_commit(name, version, content)


def read_commit(name: str, version: int, content: bytes | LogFile) -> StagedCommit | Invalid:
    """As `read_staged`, of a file whose name does not say the version."""
    try:
        actions = parse_commit(content, strict=True)
    except UnreadableCommit as error:
        return _invalid(f"{name} is not a commit: {error}")
    info = actions[0]
    if not isinstance(info, CommitInfo):
        return _invalid(
            f"{name} has to begin with its commitInfo, as the table has in-commit timestamps"
        )
    timestamp = info.in_commit_timestamp
    if timestamp is None or not 0 <= timestamp <= MAX_TIMESTAMP + version:
        return _invalid(
            f"{name} has the inCommitTimestamp {timestamp}; expected milliseconds from 1970 to the "
            "year 9999"
        )
    if info.txn_id is not None and not _TRANSACTION_ID.match(info.txn_id):
        return _invalid(
            f"{name} has the txnId {excerpt(info.txn_id)}; expected 1 to 128 letters, digits, '.', "
            "'_', ':' and '-'"
        )
    if _OWN_MARK in _COMMIT_INFO.decode(info.raw)["commitInfo"]:
        return _invalid(
            f"{name} has {_OWN_MARK!r} in its commitInfo, which marks the service's own"
        )
    return StagedCommit(
        version=version,
        name=name,
        content=content,
        actions=actions,
        commit_info=info,
        timestamp=timestamp,
    )


def proposal_of(staged: StagedCommit) -> Proposal:
    """The proposal that a staged commit is. Its writer has seen every version before it, so it has
    no reads to be checked. Its id is the txnId of its commitInfo, which a writer keeps when it
    stages the same work again; without one, the file's name."""
    info = staged.commit_info
    return Proposal(
        transaction_id=info.txn_id or staged.name,
        read_version=staged.version - 1,
        operation=info.operation or UNKNOWN_OPERATION,
        operation_parameters=info.operation_parameters or {},
        operation_metrics=info.operation_metrics or {},
        user_metadata=info.user_metadata,
        engine_info=info.engine_info,
        actions=tuple(action for action in staged.actions if _is_proposed(action)),
        size=len(staged.content),
        staged=staged,
    )


def _is_proposed(action: Action) -> bool:
    """Whether a proposal has such an action: it leaves commitInfo and row ids to the service."""
    if isinstance(action, DomainMetadata):
        return action.domain != DOMAIN or action.removed
    return not isinstance(action, CommitInfo)


def _invalid(detail: str) -> Invalid:
    return Invalid(code=Code.INVALID_ACTION, detail=detail)
