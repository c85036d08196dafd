"""Problem bodies to errors (RFC 9457; the codes are `tidegate_protocol.problems`)."""

import msgspec
from msgspec import Struct

from tidegate.errors import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConflictError,
    ConflictInfo,
    InvalidProposal,
    InvalidRequest,
    MetadataChangedException,
    NotFound,
    PermissionDenied,
    ProtocolChangedException,
    ReadVersionTooOld,
    ServiceUnavailable,
    TableAlreadyExists,
    TableNotFound,
    TableQuarantined,
    TidegateError,
    TooLarge,
    TransactionAborted,
    TransactionCommitted,
    TransactionNotFound,
    Unauthenticated,
    UnexpectedAnswer,
    VersionNotFound,
)
from tidegate.exchange import Response
from tidegate_protocol.problems import Code
from tidegate_protocol.text import excerpt

ERRORS: dict[Code, type[TidegateError]] = {
    Code.CONCURRENT_APPEND: ConcurrentAppendException,
    Code.CONCURRENT_DELETE_READ: ConcurrentDeleteReadException,
    Code.CONCURRENT_DELETE_DELETE: ConcurrentDeleteDeleteException,
    Code.METADATA_CHANGED: MetadataChangedException,
    Code.PROTOCOL_CHANGED: ProtocolChangedException,
    Code.CONCURRENT_TRANSACTION: ConcurrentTransactionException,
    Code.TABLE_EXISTS: TableAlreadyExists,
    Code.READ_VERSION_TOO_OLD: ReadVersionTooOld,
    Code.TRANSACTION_COMMITTED: TransactionCommitted,
    Code.TRANSACTION_ABORTED: TransactionAborted,
    Code.TABLE_NOT_FOUND: TableNotFound,
    Code.VERSION_NOT_FOUND: VersionNotFound,
    Code.TRANSACTION_NOT_FOUND: TransactionNotFound,
    Code.ROUTE_NOT_FOUND: UnexpectedAnswer,
    Code.DUPLICATE_ACTION: InvalidProposal,
    Code.PARTITION_MISMATCH: InvalidProposal,
    Code.MULTIPLE_METADATA: InvalidProposal,
    Code.MULTIPLE_PROTOCOL: InvalidProposal,
    Code.MISSING_METADATA: InvalidProposal,
    Code.APPEND_ONLY: InvalidProposal,
    Code.SET_TRANSACTION_CONFLICT: InvalidProposal,
    Code.DELETION_VECTOR_MISSING_NUM_RECORDS: InvalidProposal,
    Code.DELETION_VECTOR_TIGHT_BOUNDS: InvalidProposal,
    Code.DELETION_VECTORS_DISALLOWED: InvalidProposal,
    Code.PROTOCOL_DOWNGRADE: InvalidProposal,
    Code.INVALID_PROTOCOL: InvalidProposal,
    Code.UNSUPPORTED_FEATURE: InvalidProposal,
    Code.INVALID_ACTION: InvalidProposal,
    Code.INVALID_PATH: InvalidProposal,
    Code.TRANSACTION_ID_REUSED: InvalidProposal,
    Code.INVALID_PREDICATE: InvalidRequest,
    Code.INVALID_SCHEMA: InvalidRequest,
    Code.INVALID_NAME: InvalidRequest,
    Code.INVALID_LOCATION: InvalidRequest,
    Code.BROKEN_LOG: InvalidRequest,
    Code.INVALID_REQUEST: InvalidRequest,
    Code.MALFORMED_HTTP: UnexpectedAnswer,
    Code.UNAUTHENTICATED: Unauthenticated,
    Code.FORBIDDEN: PermissionDenied,
    Code.METHOD_NOT_ALLOWED: UnexpectedAnswer,
    Code.TOO_LARGE: TooLarge,
    Code.UNSUPPORTED_MEDIA_TYPE: UnexpectedAnswer,
    Code.HOST_NOT_ALLOWED: UnexpectedAnswer,
    Code.BACKPRESSURE: ServiceUnavailable,
    Code.COMMIT_STATE_UNKNOWN: ServiceUnavailable,
    Code.STORAGE_UNAVAILABLE: ServiceUnavailable,
    Code.INDEX_UNAVAILABLE: ServiceUnavailable,
    Code.TABLE_QUARANTINED: TableQuarantined,
    Code.CLOCK_SKEW: ServiceUnavailable,
    Code.SHUTTING_DOWN: ServiceUnavailable,
    Code.DEADLINE_EXCEEDED: ServiceUnavailable,
    Code.INTERNAL_ERROR: ServiceUnavailable,
}
"""The class of every code. `commit-state-unknown` on the wire ends one attempt, not the work:
the flow asks again, and raises `CommitStateUnknown` itself where it gives up."""

_BY_STATUS: dict[int, type[TidegateError]] = {
    401: Unauthenticated,
    403: PermissionDenied,
    404: NotFound,
    409: ConflictError,
    410: TransactionAborted,
    413: TooLarge,
    422: InvalidRequest,
    429: ServiceUnavailable,
}


class _Place(Struct, frozen=True, kw_only=True):
    where: str
    why: str


class _Problem(Struct, frozen=True, kw_only=True):
    code: str
    title: str = ""
    detail: str = ""
    hint: str | None = None
    conflict: ConflictInfo | None = None
    version: int | None = None
    transaction_id: str | None = None
    instance: str | None = None
    errors: tuple[_Place, ...] = ()


_PROBLEM = msgspec.json.Decoder(_Problem)


def error_of(response: Response) -> TidegateError:
    """The error that a response other than 2xx stands for, `definite` still False.

    A code that this version does not know is raised by its status. A body that is no problem
    comes from something between here and the service, and `code` is None.
    """
    request_id = response.headers.get("x-request-id")
    try:
        problem = _PROBLEM.decode(response.body)
    except msgspec.DecodeError:
        return _class_of(None, response.status)(
            f"expected a problem from the service, found status {response.status} "
            f"with {excerpt(response.body)}",
            status=response.status,
            request_id=request_id,
        )
    return _class_of(problem.code, response.status)(
        problem.detail or problem.title or f"status {response.status}",
        code=problem.code,
        status=response.status,
        hint=problem.hint,
        conflict=problem.conflict,
        version=problem.version,
        transaction_id=problem.transaction_id,
        request_id=problem.instance or request_id,
        errors=tuple(f"{error.where}: {error.why}" for error in problem.errors),
    )


def _class_of(code: str | None, status: int) -> type[TidegateError]:
    if code is not None and code in ERRORS:
        return ERRORS[Code(code)]
    if status >= 500:
        return ServiceUnavailable
    return _BY_STATUS.get(status, UnexpectedAnswer)
