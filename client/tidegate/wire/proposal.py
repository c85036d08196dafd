"""A transaction on the wire: proposing it and aborting it."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import islice
from typing import Any

import msgspec

from tidegate.wire.exchange import JSON, NDJSON, Body, Request, segment
from tidegate.wire.flow import RetryPolicy
from tidegate.wire.pieces import HeldPieces, spooled
from tidegate_protocol.log.actions import Action, Add, Remove
from tidegate_protocol.log.codec import encode, encode_lines
from tidegate_protocol.proposal.transaction import Proposal

MANY_ACTIONS = 5_000
"""A proposal of so many is sent as NDJSON, which the service reads as it comes."""
_LINES_A_PIECE = 1_000
_ACTIONS_A_S = 10_000
"""What a busy service is expected to take."""


def commit_request(table_id: str, body: Body) -> Request:
    """`body` is of `encode_proposal`."""
    return _proposal_request(f"/tables/{segment(table_id)}/commits", body)


def check_request(table_id: str, body: Body) -> Request:
    """What proposing the body would come to; `body` is of `encode_proposal`."""
    return _proposal_request(f"/tables/{segment(table_id)}/conflict-check", body)


def _proposal_request(path: str, body: Body) -> Request:
    return Request(
        method="POST",
        path=path,
        body=body,
        content_type=JSON if isinstance(body, bytes) else NDJSON,
    )


def patience(policy: RetryPolicy, *, actions: int) -> RetryPolicy:
    """The policy, with the time that the service may take for so many actions."""
    longer_s = actions / _ACTIONS_A_S if actions >= MANY_ACTIONS else 0.0
    return replace(
        policy,
        deadline_s=policy.deadline_s + longer_s,
        attempt_s=policy.attempt_s + longer_s,
    )


def abort_request(table_id: str, transaction_id: str) -> Request:
    path = f"/tables/{segment(table_id)}/transactions/{segment(transaction_id)}/abort"
    return Request(method="POST", path=path)


def encode_proposal(proposal: Proposal) -> Body:
    """The JSON body, or the pieces of an NDJSON body where the actions are many. Equal proposals
    have equal bytes, and the actions keep their own.

    Raises `TypeError` where parameters or metrics hold something that JSON cannot.
    """
    actions = proposal.actions
    if len(actions) < MANY_ACTIONS:
        envelope = _envelope(proposal)
        envelope["actions"] = [msgspec.Raw(encode(action)) for action in actions]
        return msgspec.json.encode(envelope, order="deterministic")
    return HeldPieces(_lines(proposal, actions))


def spooled_proposal(proposal: Proposal, actions: Iterable[Action]) -> AbstractContextManager[Body]:
    """An NDJSON body of a proposal without actions of its own, with these, however many they are:
    they are taken one after the other, and kept as lines in a temporary file. Raises as
    `encode_proposal`, and what the actions raise."""
    return spooled(_lines(proposal, actions))


def _lines(proposal: Proposal, actions: Iterable[Action]) -> Iterator[bytes]:
    yield msgspec.json.encode(_envelope(proposal), order="deterministic") + b"\n"
    coming = iter(actions)
    while piece := tuple(islice(coming, _LINES_A_PIECE)):
        yield encode_lines(piece)


def _envelope(proposal: Proposal) -> dict[str, Any]:
    reads = proposal.reads
    return {
        "transaction_id": proposal.transaction_id,
        "read_version": proposal.read_version,
        "reads": {
            "whole_table": reads.whole_table,
            "predicates": reads.predicates,
            "files": sorted(reads.files),
            "app_ids": sorted(reads.app_ids),
        },
        "operation": proposal.operation,
        "operation_parameters": dict(proposal.operation_parameters),
        "operation_metrics": dict(proposal.operation_metrics),
        "isolation_level": proposal.isolation_level,
        "user_metadata": proposal.user_metadata,
        "tags": dict(proposal.tags),
        "engine_info": proposal.engine_info,
        "skip_if_empty": proposal.skip_if_empty,
    }


def removal(file: Add, *, deletion_timestamp: int, data_change: bool) -> Remove:
    """The remove of a live file, with everything that the log knows of it (PROTOCOL.md, "Add
    File and Remove File": `extendedFileMetadata`); `deletion_timestamp` in ms."""
    return Remove(
        path=file.path,
        data_change=data_change,
        deletion_timestamp=deletion_timestamp,
        extended_file_metadata=True,
        partition_values=file.partition_values,
        size=file.size,
        stats=file.stats,
        tags=file.tags,
        deletion_vector=file.deletion_vector,
        base_row_id=file.base_row_id,
        default_row_commit_version=file.default_row_commit_version,
    )
