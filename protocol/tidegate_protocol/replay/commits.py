"""Commit files as values: what a `<version>.json` holds, and what a winner's rules need of it."""

from collections.abc import Sequence
from typing import Any

import msgspec

from tidegate_protocol.log.actions import (
    Action,
    Add,
    AddCDCFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    Remove,
    Txn,
    UnknownAction,
)
from tidegate_protocol.log.codec import InvalidActionError
from tidegate_protocol.log.content import LogFile, is_blank
from tidegate_protocol.log.lines import decode_lines
from tidegate_protocol.proposal.transaction import WinningCommit

_COMMIT_INFO = msgspec.json.Decoder(dict[str, dict[str, Any]])


MAX_TIMESTAMP = 253_402_300_799_999
"""The last millisecond of the year 9999: what version 0 can be dated at most, and each version
behind it a millisecond more. So whatever a version is dated, the next one has room after it."""


class UnreadableCommit(ValueError):
    """The content is not a commit of a Delta log; the message says where and why."""


def parse_commit(content: bytes | LogFile, *, strict: bool = False) -> tuple[Action, ...]:
    """The actions of a commit file, in order. Of several metaData, protocol or commitInfo actions,
    the first one of the kind, as Delta's kernel reads them. With `strict`, such a file is refused,
    and so is a line that two readers may read differently (`codec.decode`).

    Raises `UnreadableCommit`, also for a file of white space, which its writer may be about to
    fill.
    """
    try:
        actions = tuple(
            decode_lines(content, strict=strict)
            if isinstance(content, bytes)
            else content.actions(strict=strict)
        )
    except InvalidActionError as error:
        raise UnreadableCommit(str(error)) from None
    if not actions and is_blank(content):
        raise UnreadableCommit("the file is empty: expected at least a line")
    for kind in (Metadata, Protocol, CommitInfo):
        found = [action for action in actions if isinstance(action, kind)]
        if len(found) > 1 and strict:
            raise UnreadableCommit(f"{len(found)} {kind.__name__} actions; expected at most one")
        if len(found) > 1:
            actions = tuple(a for a in actions if a is found[0] or not isinstance(a, kind))
    return actions


def timestamp_of(version: int, actions: Sequence[Action], *, fallback: int) -> int:
    """The date of a commit of this service, in ms, as in the answer to its client: the in-commit
    timestamp, else commitInfo's, else `fallback`.

    Others may forge such a commit: a time before 1970 or after `MAX_TIMESTAMP` is passed over,
    since every later commit's would have to lie beyond that.
    """
    info = commit_info(actions)
    if info is None:
        return fallback
    for timestamp in (info.in_commit_timestamp, info.timestamp):
        if timestamp is not None and 0 <= timestamp <= MAX_TIMESTAMP + version:
            return timestamp
    return fallback


def commit_info(actions: Sequence[Action]) -> CommitInfo | None:
    """The commit's commitInfo action, wherever in the file it is."""
    return next((action for action in actions if isinstance(action, CommitInfo)), None)


def body_digest(info: CommitInfo) -> str | None:
    """The digest of the proposal that a commit of ours was, from `commitInfo.tidegate`."""
    return _marked(info, "bodyDigest")


def table_id(info: CommitInfo) -> str | None:
    """The `metaData.id` of the table that a commit of ours was decided for; None for version 0,
    and where it does not say."""
    return _marked(info, "tableId")


def _marked(info: CommitInfo, name: str) -> str | None:
    marker = _COMMIT_INFO.decode(info.raw)["commitInfo"].get("tidegate")
    value = marker.get(name) if isinstance(marker, dict) else None
    return value if isinstance(value, str) else None


def summarize(version: int, actions: Sequence[Action], *, timestamp: int) -> WinningCommit:
    """A commit as the conflict rules look at it. `actions` are those of one commit file,
    `timestamp` is the version's date in ms."""
    adds: list[Add] = []
    removes: list[Remove] = []
    txns: list[Txn] = []
    domains: list[DomainMetadata] = []
    unknown: list[UnknownAction] = []
    metadata: Metadata | None = None
    protocol: Protocol | None = None
    info: CommitInfo | None = None
    for action in actions:
        match action:
            case Add():
                adds.append(action)
            case Remove():
                removes.append(action)
            case CommitInfo():
                info = info or action
            case Txn():
                txns.append(action)
            case DomainMetadata():
                domains.append(action)
            case Metadata():
                metadata = metadata or action
            case Protocol():
                protocol = protocol or action
            case UnknownAction():
                unknown.append(action)
            case AddCDCFile():
                pass
    winner = WinningCommit(
        version=version,
        timestamp=timestamp,
        operation=None if info is None else info.operation,
        is_blind_append=info is not None and info.is_blind_append is True,
        adds=tuple(adds),
        removes=tuple(removes),
        metadata=metadata,
        protocol=protocol,
        txns=tuple(txns),
        domains=tuple(domains),
        commit_info=None if info is None else _without_figures(info),
        unknown=tuple(unknown),
    )
    # Weighed here, where large commits are summarized in a thread.
    winner.weigh()
    return winner


def _without_figures(info: CommitInfo) -> CommitInfo:
    """Without what no rule looks at and may be of any shape: in memory, many times its bytes."""
    return msgspec.structs.replace(info, operation_parameters=None, operation_metrics=None)
