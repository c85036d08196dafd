"""The last step before a commit lands: its timestamp, its commitInfo, its bytes.

Pure: the same transaction, clock and version give the same bytes in every process.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from tidegate_protocol import __version__
from tidegate_protocol.features import row_tracking, type_widening
from tidegate_protocol.features.properties import (
    CHECKPOINT_PROTECTION,
    IN_COMMIT_TIMESTAMPS_SINCE_TIMESTAMP,
    IN_COMMIT_TIMESTAMPS_SINCE_VERSION,
    TableProperties,
)
from tidegate_protocol.features.row_tracking import ROW_TRACKING_PRESERVED_TAG
from tidegate_protocol.log.actions import (
    APPLICATION_TAG,
    Action,
    CommitInfo,
    Metadata,
    Remove,
    has_any,
)
from tidegate_protocol.log.codec import from_body, with_fields
from tidegate_protocol.log.content import content_of
from tidegate_protocol.proposal import operations
from tidegate_protocol.proposal.transaction import PreparedTransaction, Proposal, ReadyCommit

ENGINE_INFO = f"Tidegate/{__version__}"
"""commitInfo.engineInfo of a proposal that names no engine."""

_SINCE = (IN_COMMIT_TIMESTAMPS_SINCE_VERSION, IN_COMMIT_TIMESTAMPS_SINCE_TIMESTAMP)


def complete(
    txn: PreparedTransaction, *, now_ms: int, previous_timestamp: int, version: int
) -> ReadyCommit:
    """The commit of a transaction that was checked against every version before `version`.

    `previous_timestamp` is that of version - 1 in ms (-1 where there is none); the commit's is
    later, whatever the clock says. Raises `ValueError` where the transaction was not checked
    against exactly the versions before this one: a decision is never used twice.
    """
    if version != txn.checked_through + 1:
        raise ValueError(
            f"checked through version {txn.checked_through}, cannot land as version {version}"
        )
    timestamp = max(now_ms, previous_timestamp + 1)
    in_commit = TableProperties.parse(txn.metadata.configuration).in_commit_timestamps
    if txn.metadata_changed and in_commit:
        txn = _with_enablement(txn, version=version, timestamp=timestamp)
    txn = _with_feature_values(txn, version=version)
    info = _commit_info(txn, timestamp=timestamp, in_commit=in_commit)
    actions: tuple[Action, ...] = (info, *txn.actions)
    return ReadyCommit(
        version=version,
        timestamp=timestamp,
        content=content_of(actions),
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


def _with_feature_values(txn: PreparedTransaction, *, version: int) -> PreparedTransaction:
    """The transaction with what its features make of the version that it lands as."""
    actions = txn.actions
    if has_any(actions, Metadata):
        actions = tuple(
            _own_metadata(txn, action, version=version) if isinstance(action, Metadata) else action
            for action in actions
        )
    if txn.row_ids_released:
        actions = row_tracking.assigned(actions, mark=txn.row_id_high_water_mark, version=version)
    elif row_tracking.is_suspended(txn.protocol, txn.metadata):
        actions = row_tracking.without_row_ids(actions)
    if actions == txn.actions:
        return txn
    metadata = next((a for a in actions if isinstance(a, Metadata)), txn.metadata)
    return replace(txn, actions=actions, metadata=metadata)


def _own_metadata(txn: PreparedTransaction, metadata: Metadata, *, version: int) -> Metadata:
    read_version = txn.read.version
    if version == read_version + 1:
        return metadata
    protected_until = metadata.configuration.get(CHECKPOINT_PROTECTION)
    before = {} if txn.read.metadata is None else txn.read.metadata.configuration
    if txn.proposal.operation == operations.DROP_FEATURE and protected_until not in (
        None,
        before.get(CHECKPOINT_PROTECTION),
    ):
        configuration = {**metadata.configuration, CHECKPOINT_PROTECTION: str(version)}
        metadata = with_fields(metadata, {"configuration": configuration})
    return type_widening.moved(metadata, read_version=read_version, version=version)


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
        "tags": {**_sender(proposal), **_row_tracking_tags(txn), **proposal.tags, **txn.tags}
        or None,
        "engineInfo": proposal.engine_info or ENGINE_INFO,
        "txnId": proposal.transaction_id,
        "tidegate": _mark(txn),
    }
    return from_body(CommitInfo, {name: value for name, value in body.items() if value is not None})


def _mark(txn: PreparedTransaction) -> dict[str, str]:
    """What tells commits of ours from others', and from those of another table that was at the
    same place before. A first version says by its own metadata which table it is of."""
    mark = {"bodyDigest": txn.proposal.digest()}
    if txn.read.metadata is not None:
        mark["tableId"] = txn.read.metadata.id
    return mark


def _sender(proposal: Proposal) -> dict[str, str]:
    """A writer's own tag of that name stays."""
    return {} if proposal.application_id is None else {APPLICATION_TAG: proposal.application_id}


def _row_tracking_tags(txn: PreparedTransaction) -> dict[str, str]:
    """That rows kept their ids can be said for writers where none were updated or copied."""
    if not txn.row_ids_released or has_any(txn.actions, Remove):
        return {}
    enabled = TableProperties.parse(txn.metadata.configuration).row_tracking
    return {ROW_TRACKING_PRESERVED_TAG: "true"} if enabled else {}


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    """Text as it is, anything else as JSON text: how Delta keeps parameters and metrics."""
    return {
        name: value if isinstance(value, str) else msgspec.json.encode(value).decode()
        for name, value in values.items()
    }
