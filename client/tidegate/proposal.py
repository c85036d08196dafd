"""A transaction on the wire: proposing it and aborting it."""

import msgspec

from tidegate.exchange import Request, segment
from tidegate_protocol.actions import Add, Remove
from tidegate_protocol.codec import encode
from tidegate_protocol.transaction import Proposal


def commit_request(table_id: str, body: bytes) -> Request:
    """`body` is of `encode_proposal`."""
    return Request(method="POST", path=f"/tables/{segment(table_id)}/commits", body=body)


def abort_request(table_id: str, transaction_id: str) -> Request:
    path = f"/tables/{segment(table_id)}/transactions/{segment(transaction_id)}/abort"
    return Request(method="POST", path=path)


def encode_proposal(proposal: Proposal) -> bytes:
    """The JSON body. Equal proposals have equal bytes, and the actions keep their own.

    Raises `TypeError` where parameters or metrics hold something that JSON cannot.
    """
    reads = proposal.reads
    return msgspec.json.encode(
        {
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
            "actions": [msgspec.Raw(encode(action)) for action in proposal.actions],
        },
        order="deterministic",
    )


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
