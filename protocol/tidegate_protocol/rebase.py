"""The last step before a commit lands: its timestamp, its commitInfo, its bytes.

Pure: the same transaction, clock and version give the same bytes in every process.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from tidegate_protocol import __version__
from tidegate_protocol.actions import Action, CommitInfo, Metadata
from tidegate_protocol.codec import encode_lines, from_body, with_fields
from tidegate_protocol.properties import (
    IN_COMMIT_TIMESTAMPS_SINCE_TIMESTAMP,
    IN_COMMIT_TIMESTAMPS_SINCE_VERSION,
    TableProperties,
)
from tidegate_protocol.transaction import PreparedTransaction, ReadyCommit

ENGINE_INFO = f"Tidegate/{__version__}"
"""commitInfo.engineInfo of a proposal that names no engine."""

_SINCE = (IN_COMMIT_TIMESTAMPS_SINCE_VERSION, IN_COMMIT_TIMESTAMPS_SINCE_TIMESTAMP)


def complete(
    txn: PreparedTransaction, *, now_ms: int, previous_timestamp: int, version: int
) -> ReadyCommit:
    """The commit of a transaction that was judged against every version before `version`.

    `previous_timestamp` is that of version - 1 in ms (-1 where there is none); the commit's is
    later, whatever the clock says. Raises `ValueError` where the transaction was not judged
    against exactly the versions before this one: a decision is never used twice.
    """
    if version != txn.judged_through + 1:
        raise ValueError(
            f"judged through version {txn.judged_through}, cannot land as version {version}"
        )
    timestamp = max(now_ms, previous_timestamp + 1)
    in_commit = TableProperties.parse(txn.metadata.configuration).in_commit_timestamps
    if txn.metadata_changed and in_commit:
        txn = _with_enablement(txn, version=version, timestamp=timestamp)
    info = _commit_info(txn, timestamp=timestamp, in_commit=in_commit)
    actions: tuple[Action, ...] = (info, *txn.actions)
    return ReadyCommit(
        version=version,
        timestamp=timestamp,
        content=encode_lines(actions),
        actions=actions,
        transaction=txn,
        commit_info=info,
    )


def _with_enablement(
    txn: PreparedTransaction, *, version: int, timestamp: int
) -> PreparedTransaction:
    """The transaction whose metaData says since when commits carry their own timestamps.

    Readers need that only where earlier commits do not, so not in version 0. A metaData that
    lost the record, as a replaced table's does, gets it back.
    """
    before = txn.read.metadata
    if before is None:
        return txn
    configuration = dict(txn.metadata.configuration)
    if TableProperties.parse(before.configuration).in_commit_timestamps:
        kept = [name for name in _SINCE if name in before.configuration]
        configuration.update({name: before.configuration[name] for name in kept})
    else:
        configuration.update(zip(_SINCE, (str(version), str(timestamp)), strict=True))
    if configuration == txn.metadata.configuration:
        return txn
    metadata = with_fields(txn.metadata, {"configuration": configuration})
    return replace(
        txn,
        metadata=metadata,
        actions=tuple(
            metadata if isinstance(action, Metadata) else action for action in txn.actions
        ),
    )


def _commit_info(txn: PreparedTransaction, *, timestamp: int, in_commit: bool) -> CommitInfo:
    proposal = txn.proposal
    body: dict[str, Any] = {
        "timestamp": timestamp,
        "inCommitTimestamp": timestamp if in_commit else None,
        "operation": proposal.operation,
        "operationParameters": _texts(proposal.operation_parameters),
        "readVersion": txn.read.version if txn.read.version >= 0 else None,
        "isolationLevel": txn.isolation_level.value,
        "isBlindAppend": txn.is_blind_append,
        "operationMetrics": _texts(proposal.operation_metrics),
        "userMetadata": proposal.user_metadata,
        "tags": {**proposal.tags, **txn.tags} or None,
        "engineInfo": proposal.engine_info or ENGINE_INFO,
        "txnId": proposal.transaction_id,
        "tidegate": {"bodyDigest": proposal.digest()},
    }
    return from_body(CommitInfo, {name: value for name, value in body.items() if value is not None})


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    """Text as it is, anything else as JSON text: how Delta keeps parameters and metrics."""
    return {
        name: value if isinstance(value, str) else msgspec.json.encode(value).decode()
        for name, value in values.items()
    }
