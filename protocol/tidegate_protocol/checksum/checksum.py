"""A version's checksum as a value, and as the bytes of `<version>.crc`."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct

from tidegate_protocol.base import strict_json
from tidegate_protocol.base.text import excerpt
from tidegate_protocol.checksum.histograms import DeletedRecordCountsHistogram, FileSizeHistogram
from tidegate_protocol.log import codec
from tidegate_protocol.log.actions import (
    Action,
    Add,
    DomainMetadata,
    Long,
    Metadata,
    Protocol,
    Txn,
    file_key,
)

MAX_BYTES = 32 * 1024 * 1024
"""A larger file is not read as a checksum."""


class InvalidChecksum(ValueError):
    """The bytes are no version checksum; the message says why."""


class Checksum(Struct, frozen=True, kw_only=True, rename="camel"):
    """PROTOCOL.md, "Version Checksum File Schema": None stands for what is left out."""

    txn_id: str | None = None
    table_size_bytes: Long
    num_files: Long
    num_deleted_records: Long | None = msgspec.field(default=None, name="numDeletedRecordsOpt")
    num_deletion_vectors: Long | None = msgspec.field(default=None, name="numDeletionVectorsOpt")
    num_metadata: Long = 1
    num_protocol: Long = 1
    in_commit_timestamp: Long | None = msgspec.field(default=None, name="inCommitTimestampOpt")
    set_transactions: tuple[Txn, ...] | None = None
    domain_metadata: tuple[DomainMetadata, ...] | None = None
    metadata: Metadata
    protocol: Protocol
    file_size_histogram: FileSizeHistogram | None = None
    deleted_record_counts_histogram: DeletedRecordCountsHistogram | None = msgspec.field(
        default=None, name="deletedRecordCountsHistogramOpt"
    )
    all_files: tuple[Add, ...] | None = None


_ENCODER = msgspec.json.Encoder()
_ENVELOPE = msgspec.json.Decoder(dict[str, Raw])
_ACTIONS = frozenset({"set_transactions", "domain_metadata", "metadata", "protocol", "all_files"})
_OLDER_NAME = "histogramOpt"
"""What Delta Spark calls `fileSizeHistogram` unless it is told to follow the protocol."""


def encode(checksum: Checksum) -> bytes:
    """The content of the file. Actions stand there with all that their log lines have."""
    body: dict[str, Any] = {}
    for field in msgspec.structs.fields(Checksum):
        value = getattr(checksum, field.name)
        if value is None:
            continue
        if field.name in _ACTIONS:
            value = _bodies(value) if isinstance(value, tuple) else _body(value)
        body[field.encode_name] = value
    return _ENCODER.encode(body) + b"\n"


def decode(content: bytes, *, max_bytes: int = MAX_BYTES) -> Checksum:
    """A checksum, whoever wrote it. Raises `InvalidChecksum`, also for a longer one."""
    if len(content) > max_bytes:
        raise InvalidChecksum(f"it has {len(content)} bytes, and at most {max_bytes} are read")
    try:
        body = strict_json.decode(content)
    except strict_json.InvalidJson as error:
        raise InvalidChecksum(str(error)) from None
    if not isinstance(body, dict):
        raise InvalidChecksum("expected a JSON object")
    if _OLDER_NAME in body:
        body.setdefault("fileSizeHistogram", body[_OLDER_NAME])
    try:
        return msgspec.convert(body, Checksum)
    except (msgspec.ValidationError, ValueError) as error:
        raise InvalidChecksum(str(error)) from None


def _body(action: Action) -> Raw:
    (body,) = _ENVELOPE.decode(codec.encode(action)).values()
    return body


def _bodies(actions: Sequence[Action]) -> list[Raw]:
    return [_body(action) for action in actions]


def differences(found: Checksum, known: Checksum) -> Mapping[str, str]:
    """What the file says otherwise than is known: the end of a sentence for each of its fields, by
    the field's name. What either leaves out says nothing."""
    said: dict[str, str] = {}
    for field in msgspec.structs.fields(Checksum):
        theirs, ours = getattr(found, field.name), getattr(known, field.name)
        if theirs is None or ours is None or _comparable(theirs) == _comparable(ours):
            continue
        shown = isinstance(ours, int | str)
        said[field.encode_name] = (
            f"expected {_shown(ours)}, found {_shown(theirs)}" if shown else "it is another one"
        )
    return said


def _shown(value: int | str) -> str:
    return excerpt(value) if isinstance(value, str) else str(value)


def _comparable(value: object) -> object:
    """Of actions what the table is by, whatever else their lines hold; of several, in any order."""
    match value:
        case tuple():
            return Counter(map(_comparable, value))
        case Metadata() | Protocol():
            return msgspec.structs.replace(value, raw=b"")
        case Txn():
            return value.app_id, value.version
        case DomainMetadata():
            return value.domain, value.configuration, value.removed
        case Add():
            return file_key(value), value.size
    return value
