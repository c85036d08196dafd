"""What the service answers with, as frozen values.

Unknown fields are passed over, so that an older client reads a newer service.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from tidegate.errors import UnexpectedAnswer
from tidegate.wire.exchange import NDJSON, REQUEST_ID_HEADER, Response
from tidegate_protocol.base.text import excerpt
from tidegate_protocol.log.actions import Action, Add, Metadata, Protocol
from tidegate_protocol.log.codec import InvalidActionError, decode
from tidegate_protocol.proposal.transaction import IsolationLevel
from tidegate_protocol.schema.table_schema import StructType, parse_schema

DataFile = Add
"""A data file is the log's `add` action: percent-encoded `path` relative to the table's
location, `partition_values`, `size` in bytes, `stats` as JSON text, ..."""

T = TypeVar("T")
A = TypeVar("A", bound=Action)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableVersion:
    """A table as of one version; `timestamp` (ms) is the version's own."""

    id: str
    name: str
    location: str
    version: int
    timestamp: int
    protocol: Protocol
    metadata: Metadata

    @property
    def schema(self) -> StructType:
        """Parsed anew at each call; `metadata.schema_string` is its JSON text."""
        return parse_schema(self.metadata.schema_string)

    @property
    def partition_columns(self) -> tuple[str, ...]:
        return self.metadata.partition_columns

    @property
    def properties(self) -> Mapping[str, str]:
        return self.metadata.configuration


@dataclass(frozen=True, slots=True, kw_only=True)
class TableHead(TableVersion):
    """A table at its latest version; `num_files` and `size_bytes` are of it.

    `state` is `active` or `quarantined` (readable, but closed to commits, for `state_reason`).
    """

    published_version: int
    num_files: int
    size_bytes: int
    catalog_managed: bool
    state: str
    state_reason: str | None


class CommitMetrics(Struct, frozen=True, kw_only=True):
    """What a commit did; `duration_ms` as the service measured it."""

    num_added_files: int
    num_removed_files: int
    bytes_added: int
    bytes_removed: int
    attempts: int
    duration_ms: int


class Receipt(Struct, frozen=True, kw_only=True):
    """A commit that landed as `version`.

    `timestamp` in ms. `rebased_over` counts the winners between `read_version` and `version`.
    `published` says whether `<version>.json` was already visible in the log, `replayed` whether
    an earlier copy of the same proposal had landed it.
    """

    table: str
    version: int
    read_version: int
    transaction_id: str
    timestamp: int
    isolation_level: IsolationLevel
    is_blind_append: bool
    rebased_over: int
    published: bool
    replayed: bool
    metrics: CommitMetrics


class Commit(Struct, frozen=True, kw_only=True):
    """One version of a table's history; `timestamp` in ms, `content_sha256` (hex) of the bytes
    of `<version>.json`, None for the first version of a registered table that only a checkpoint
    is left of.

    `transaction_id` is None for a `foreign` commit that names none: one that was written to the
    log past the service.
    """

    version: int
    timestamp: int
    operation: str | None
    transaction_id: str | None
    is_blind_append: bool
    isolation_level: IsolationLevel | None
    read_version: int | None
    rebased_over: int
    foreign: bool
    content_sha256: str | None
    metrics: CommitMetrics
    operation_parameters: dict[str, Any] = {}
    operation_metrics: dict[str, Any] = {}
    engine_info: str | None = None
    user_metadata: str | None = None
    tags: dict[str, str | None] = {}


class TransactionStatus(Struct, frozen=True, kw_only=True):
    """What is known of a transaction id: `committed` as `version`, `pending` or `aborted`.

    `commit` is the receipt of one that is committed, as proposing the same again would return.
    """

    state: str
    version: int | None = None
    commit: Receipt | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """The files of a table at `version` that may hold rows asked for; `timestamp` in ms is the
    version's own, `metadata` and `protocol` are the table's as of then."""

    version: int
    timestamp: int
    metadata: Metadata
    protocol: Protocol
    files: tuple[DataFile, ...]

    @property
    def schema(self) -> StructType:
        """Parsed anew at each call; `metadata.schema_string` is its JSON text."""
        return parse_schema(self.metadata.schema_string)


@dataclass(frozen=True, slots=True)
class TablePage:
    """One page of the list of tables; `next_cursor` is None on the last one."""

    tables: tuple[TableHead, ...]
    next_cursor: str | None


class HistoryPage(Struct, frozen=True, kw_only=True):
    """One page of a table's history; `next_to_version` is None on the last one."""

    commits: tuple[Commit, ...]
    next_to_version: int | None = None


class _Head(Struct, frozen=True, kw_only=True):
    id: str
    name: str
    location: str
    latest_version: int
    published_version: int
    latest_timestamp: int
    protocol: msgspec.Raw
    metadata: msgspec.Raw
    num_files: int
    size_bytes: int
    catalog_managed: bool
    state: str
    state_reason: str | None = None


class _Created(Struct, frozen=True, kw_only=True):
    warnings: list[str] = []


class _Page(Struct, frozen=True, kw_only=True):
    tables: list[_Head]
    next_cursor: str | None = None


class _Scan(Struct, frozen=True, kw_only=True):
    version: int
    timestamp: int
    metadata: msgspec.Raw
    protocol: msgspec.Raw
    files: list[msgspec.Raw]


class _AppTransaction(Struct, frozen=True, kw_only=True):
    version: int


def table_head(response: Response) -> TableHead:
    return _head(decoded(response, _Head))


def created(response: Response) -> tuple[TableHead, list[str]]:
    """The head of a table that was made, and what is to be told of it."""
    return table_head(response), decoded(response, _Created).warnings


def table_page(response: Response) -> TablePage:
    page = decoded(response, _Page)
    return TablePage(tuple(_head(head) for head in page.tables), page.next_cursor)


def history_page(response: Response) -> HistoryPage:
    return decoded(response, HistoryPage)


def scan_of(response: Response) -> Scan:
    body = decoded(response, _Scan)
    return Scan(
        version=body.version,
        timestamp=body.timestamp,
        metadata=_action(b'{"metaData":%b}' % bytes(body.metadata), Metadata),
        protocol=_action(b'{"protocol":%b}' % bytes(body.protocol), Protocol),
        files=tuple(_action(bytes(line), Add) for line in body.files),
    )


def app_transaction_version(response: Response) -> int:
    return decoded(response, _AppTransaction).version


def transaction_status(response: Response) -> TransactionStatus:
    """Raises `UnexpectedAnswer` also where a committed one comes without its receipt."""
    status = decoded(response, TransactionStatus)
    if status.state == "committed" and status.commit is None:
        raise UnexpectedAnswer(
            "expected the receipt of a committed transaction, found none", status=response.status
        )
    return status


def receipt_of(response: Response, *, transaction_id: str) -> Receipt:
    """Raises `UnexpectedAnswer` also for a receipt of another transaction."""
    receipt = decoded(response, Receipt)
    if receipt.transaction_id != transaction_id:
        raise UnexpectedAnswer(
            f"expected the receipt of transaction {transaction_id}, "
            f"found that of {excerpt(receipt.transaction_id)}",
            status=response.status,
        )
    return receipt


def aborted(response: Response) -> None:
    """Raises `UnexpectedAnswer` unless the service says that the id is aborted."""
    found = decoded(response, TransactionStatus)
    if found.state != "aborted":
        raise UnexpectedAnswer(
            f"expected an aborted transaction, found one that is {excerpt(found.state)}",
            status=response.status,
        )


def forgotten(response: Response) -> None:
    """Raises `UnexpectedAnswer` for any success but 204, which is the service's own."""
    if response.status != 204:
        raise UnexpectedAnswer(
            f"expected status 204, found {response.status}", status=response.status
        )


def content(response: Response) -> bytes:
    """Raises `UnexpectedAnswer` for another media type than a commit's."""
    if response.media_type != NDJSON:
        raise UnexpectedAnswer(
            f"expected a commit as {NDJSON}, found {excerpt(response.media_type)}",
            status=response.status,
        )
    return response.body


def _head(body: _Head) -> TableHead:
    return TableHead(
        id=body.id,
        name=body.name,
        location=body.location,
        version=body.latest_version,
        published_version=body.published_version,
        timestamp=body.latest_timestamp,
        protocol=_action(b'{"protocol":%b}' % bytes(body.protocol), Protocol),
        metadata=_action(b'{"metaData":%b}' % bytes(body.metadata), Metadata),
        num_files=body.num_files,
        size_bytes=body.size_bytes,
        catalog_managed=body.catalog_managed,
        state=body.state,
        state_reason=body.state_reason,
    )


def decoded(response: Response, kind: type[T]) -> T:
    """The body as a struct. Raises `UnexpectedAnswer` where it is none."""
    try:
        return msgspec.json.decode(response.body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnexpectedAnswer(
            f"status {response.status} came with a body that is not this call's answer: {error}; "
            f"found {excerpt(response.body[:512])}",
            status=response.status,
            request_id=response.headers.get(REQUEST_ID_HEADER),
        ) from None


def _action(line: bytes, kind: type[A]) -> A:
    """Through the codec, so that fields nobody here knows are kept."""
    try:
        action = decode(line)
    except InvalidActionError as error:
        raise UnexpectedAnswer(f"the service sent an action that is none: {error}") from None
    if not isinstance(action, kind):
        raise UnexpectedAnswer(f"expected an action {kind.__name__}, found {excerpt(line[:512])}")
    return action
