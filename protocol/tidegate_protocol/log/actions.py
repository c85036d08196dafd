"""The Delta log's actions as frozen values (PROTOCOL.md, "Actions").

An action carries the fields that rules need, typed, beside `raw`: the bytes of its whole
log line (`{"add":{...}}`), so that fields nobody here knows reach the log byte for byte.
An action made in code has no raw bytes until `codec.encode` makes them.
"""

from collections.abc import Iterable
from typing import Annotated, Any

from msgspec import Meta, Struct, field

from tidegate_protocol.log.paths import identity

# No JSON key of a Delta action contains a space, so this name cannot be met by accident;
# `codec.decode` overwrites the field whatever the input says.
_RAW = " raw"

# Readers on the JVM hold numbers in so many bits, and so does the index.
Int = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Long = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]

PartitionValues = dict[str, str | None]
"""Partition column (its physical name) to serialized value; null is a null partition."""
Partition = tuple[tuple[str, str | None], ...]
"""The items of an add's partition values, in their order."""


Z85_UUID_LENGTH = 20
"""A UUID's characters in the name of a deletion vector's file."""


class DeletionVector(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """PROTOCOL.md, "Deletion Vector Descriptor Schema"."""

    storage_type: str
    path_or_inline_dv: str
    offset: Long | None = None
    size_in_bytes: Long
    cardinality: Long

    @property
    def unique_id(self) -> str:
        """`<storageType><pathOrInlineDv>[@offset]`: what tells two vectors of one file apart."""
        base = f"{self.storage_type}{self.path_or_inline_dv}"
        return base if self.offset is None else f"{base}@{self.offset}"

    @property
    def is_inside(self) -> bool:
        """Whether it lies in a file of the table's folder, named by a UUID and a prefix that names
        no folder elsewhere."""
        prefix = self.path_or_inline_dv[:-Z85_UUID_LENGTH]
        return (
            self.storage_type == "u"
            and len(self.path_or_inline_dv) >= Z85_UUID_LENGTH
            and (prefix == "" or prefix.isalnum())
        )


class Add(Struct, frozen=True, kw_only=True, rename="camel"):
    """PROTOCOL.md, "Add File and Remove File"; `size` in bytes, `modification_time` in ms."""

    path: str
    partition_values: PartitionValues
    size: Long
    modification_time: Long
    data_change: bool
    stats: str | None = None
    tags: dict[str, str | None] | None = None
    deletion_vector: DeletionVector | None = None
    base_row_id: Long | None = None
    default_row_commit_version: Long | None = None
    clustering_provider: str | None = None
    raw: bytes = field(default=b"", name=_RAW)


class Remove(Struct, frozen=True, kw_only=True, rename="camel"):
    """PROTOCOL.md, "Add File and Remove File"; `deletion_timestamp` in ms."""

    path: str
    data_change: bool
    deletion_timestamp: Long | None = None
    extended_file_metadata: bool | None = None
    partition_values: PartitionValues | None = None
    size: Long | None = None
    stats: str | None = None
    tags: dict[str, str | None] | None = None
    deletion_vector: DeletionVector | None = None
    base_row_id: Long | None = None
    default_row_commit_version: Long | None = None
    raw: bytes = field(default=b"", name=_RAW)


class AddCDCFile(Struct, frozen=True, kw_only=True, rename="camel"):
    """PROTOCOL.md, "Add CDC File" (`cdc` in the log)."""

    path: str
    partition_values: PartitionValues
    size: Long
    data_change: bool
    tags: dict[str, str | None] | None = None
    raw: bytes = field(default=b"", name=_RAW)


class Format(Struct, frozen=True, kw_only=True):
    """PROTOCOL.md, "Format Specification"."""

    provider: str = "parquet"
    options: dict[str, str] = {}


class Metadata(Struct, frozen=True, kw_only=True, rename="camel"):
    """PROTOCOL.md, "Change Metadata" (`metaData` in the log); `created_time` in ms.

    Delta reads a metaData without some of its fields, and so do we: tables of its first versions
    have such. A new one needs more (`prepare_table`).
    """

    id: str
    schema_string: str = '{"type":"struct","fields":[]}'
    partition_columns: tuple[str, ...] = ()
    configuration: dict[str, str] = {}
    format: Format = field(default_factory=Format)
    name: str | None = None
    description: str | None = None
    created_time: Long | None = None
    raw: bytes = field(default=b"", name=_RAW)


class Protocol(Struct, frozen=True, kw_only=True, rename="camel"):
    """PROTOCOL.md, "Protocol Evolution"; features are None where the version has none."""

    min_reader_version: Int
    min_writer_version: Int
    reader_features: frozenset[str] | None = None
    writer_features: frozenset[str] | None = None
    raw: bytes = field(default=b"", name=_RAW)


class Txn(Struct, frozen=True, kw_only=True, rename="camel"):
    """PROTOCOL.md, "Transaction Identifiers"; `last_updated` in ms."""

    app_id: str
    version: Long
    last_updated: Long | None = None
    raw: bytes = field(default=b"", name=_RAW)


class DomainMetadata(Struct, frozen=True, kw_only=True, rename="camel"):
    """PROTOCOL.md, "Domain Metadata"."""

    domain: str
    configuration: str
    removed: bool
    raw: bytes = field(default=b"", name=_RAW)


APPLICATION_TAG = "spark.app.id"
"""The tag of commitInfo that names the Spark application; Spark's own name for its id."""


class CommitInfo(Struct, frozen=True, kw_only=True, rename="camel"):
    """PROTOCOL.md, "Commit Provenance Information"; the fields that rules read."""

    timestamp: Long | None = None
    in_commit_timestamp: Long | None = None
    operation: str | None = None
    operation_parameters: dict[str, Any] | None = None
    operation_metrics: dict[str, Any] | None = None
    read_version: Long | None = None
    isolation_level: str | None = None
    is_blind_append: bool | None = None
    engine_info: str | None = None
    user_metadata: str | None = None
    txn_id: str | None = None
    tags: dict[str, str | None] | None = None
    raw: bytes = field(default=b"", name=_RAW)

    @property
    def application_id(self) -> str | None:
        """The Spark application that committed, where the commit says so."""
        return (self.tags or {}).get(APPLICATION_TAG)


class UnknownAction(Struct, frozen=True, kw_only=True):
    """A log line of a kind that this version of the protocol package does not know."""

    kind: str
    raw: bytes


FileAction = Add | Remove | AddCDCFile
Action = (
    Add
    | Remove
    | AddCDCFile
    | Metadata
    | Protocol
    | Txn
    | DomainMetadata
    | CommitInfo
    | UnknownAction
)

KINDS: dict[str, type[Struct]] = {
    "add": Add,
    "remove": Remove,
    "cdc": AddCDCFile,
    "metaData": Metadata,
    "protocol": Protocol,
    "txn": Txn,
    "domainMetadata": DomainMetadata,
    "commitInfo": CommitInfo,
}
"""The log's name of each known kind of action."""


def classes(actions: Iterable[Action]) -> set[type]:
    """The classes that the actions are of: few, where the actions are many."""
    return set(map(type, actions))


def has_any(actions: Iterable[Action], *kinds: type) -> bool:
    """Whether one of the actions is of one of these kinds."""
    return any(issubclass(found, kinds) for found in classes(actions))


LogicalFile = tuple[str, str | None]
"""(path, deletion vector id): what identifies a logical file (PROTOCOL.md, "Action
Reconciliation"). Of the path, its `paths.identity` counts."""


def file_key(action: Add | Remove) -> LogicalFile:
    """The logical file that the action is of."""
    vector = action.deletion_vector
    return identity(action.path), None if vector is None else vector.unique_id
