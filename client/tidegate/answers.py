"""Answers of the service, decoded into the values of `models`.

Unknown fields are passed over, so that an older client reads a newer service.
"""

from dataclasses import dataclass
from typing import TypeVar

import msgspec
from msgspec import Struct

from tidegate.errors import UnexpectedAnswer
from tidegate.models import HistoryPage, Receipt, Scan, TableHead, TablePage, TransactionStatus
from tidegate.wire.exchange import NDJSON, REQUEST_ID_HEADER, Response
from tidegate_protocol.base.text import excerpt
from tidegate_protocol.log.actions import Action, Add, Metadata, Protocol
from tidegate_protocol.log.codec import InvalidActionError, decode

T = TypeVar("T")
A = TypeVar("A", bound=Action)


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


class _DefaultLocation(Struct, frozen=True, kw_only=True):
    location: str


class _Page(Struct, frozen=True, kw_only=True):
    tables: list[_Head]
    next_cursor: str | None = None


class _Scan(Struct, frozen=True, kw_only=True):
    version: int
    timestamp: int
    metadata: msgspec.Raw
    protocol: msgspec.Raw
    files: list[msgspec.Raw]


class _Domain(Struct, frozen=True, kw_only=True):
    configuration: str | None


class _AppTransaction(Struct, frozen=True, kw_only=True):
    version: int


class Totals(Struct, frozen=True, kw_only=True):
    """What a table holds at a version."""

    version: int
    num_files: int
    size_bytes: int


class _Passing(Struct, frozen=True, kw_only=True):
    transaction_id: str
    version: int | None
    check_ms: int | None = None
    totals: Totals | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """A receipt, with what the service tells only as a commit lands; None of one that had landed
    before, and where an older service says nothing."""

    receipt: Receipt
    check_ms: int | None
    totals: Totals | None


def table_head(response: Response) -> TableHead:
    return _head(decoded(response, _Head))


def created(response: Response) -> tuple[TableHead, list[str]]:
    """The head of a table that was made, and what is to be told of it."""
    return table_head(response), decoded(response, _Created).warnings


def location_of(response: Response) -> str:
    """Where a table to be is put."""
    return decoded(response, _DefaultLocation).location


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


def domain_configuration(response: Response) -> str | None:
    return decoded(response, _Domain).configuration


def transaction_status(response: Response) -> TransactionStatus:
    """Raises `UnexpectedAnswer` also where a committed one comes without its receipt."""
    status = decoded(response, TransactionStatus)
    if status.state == "committed" and status.commit is None:
        raise UnexpectedAnswer(
            "expected the receipt of a committed transaction, found none", status=response.status
        )
    return status


def landing_of(
    response: Response, *, transaction_id: str, may_be_skipped: bool = False
) -> Landing | None:
    """Where a proposal landed; None where it asked to be skipped if it is empty, and was.

    Raises `UnexpectedAnswer` also for the landing of another transaction, and of none where none
    was asked to be skipped.
    """
    passing = decoded(response, _Passing)
    if passing.transaction_id != transaction_id:
        raise UnexpectedAnswer(
            f"expected the receipt of transaction {transaction_id}, "
            f"found that of {excerpt(passing.transaction_id)}",
            status=response.status,
        )
    if may_be_skipped and passing.version is None:
        return None
    return Landing(
        receipt=decoded(response, Receipt), check_ms=passing.check_ms, totals=passing.totals
    )


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
