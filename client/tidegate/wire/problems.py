"""Problem bodies to errors (RFC 9457; the codes are `tidegate_protocol.base.problems`)."""

from collections.abc import Mapping

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
from tidegate.wire.exchange import Response
from tidegate_protocol.base.problems import PROBLEM_MEDIA_TYPE, PROBLEM_TYPE_PREFIX, PROBLEMS, Code
from tidegate_protocol.base.text import excerpt

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
    # Only Unity Catalog's API answers these two.
    Code.VERSION_TAKEN: UnexpectedAnswer,
    Code.REQUIREMENT_FAILED: UnexpectedAnswer,
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
    Code.DELETION_VECTOR_WITHOUT_REMOVE: InvalidProposal,
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

_BY_ANYBODY: dict[int, type[TidegateError]] = {
    401: Unauthenticated,
    403: PermissionDenied,
    404: NotFound,
    413: TooLarge,
    429: ServiceUnavailable,
}
"""The class of a status whoever sends it: the next step is the same."""
_BY_SERVICE: dict[int, type[TidegateError]] = _BY_ANYBODY | {
    409: ConflictError,
    410: TransactionAborted,
    422: InvalidRequest,
}
"""The class of a status that comes with a code of a newer service."""


class _Place(Struct, frozen=True, kw_only=True):
    where: str
    why: str


class _Problem(Struct, frozen=True, kw_only=True):
    type: str
    status: int
    code: str
    instance: str
    title: str = ""
    detail: str = ""
    hint: str | None = None
    conflict: ConflictInfo | None = None
    version: int | None = None
    transaction_id: str | None = None
    errors: tuple[_Place, ...] = ()


_PROBLEM = msgspec.json.Decoder(_Problem)


def error_of(response: Response, *, request_id: str) -> TidegateError:
    """The error that a response other than 2xx stands for, `definite` still False.

    `code` is None unless the service itself gave this answer to the request of this id: it then
    comes from something between here and the service, which may use the same statuses and fields
    of the same names. A code that this version does not know is raised by its status.
    """
    problem = _problem(response)
    if problem is None or problem.instance != request_id:
        return _class_of(_BY_ANYBODY, response.status)(
            _told_by_another(response, problem, request_id=request_id),
            status=response.status,
            request_id=request_id,
        )
    known = ERRORS[Code(problem.code)] if problem.code in ERRORS else None
    return (known or _class_of(_BY_SERVICE, response.status))(
        problem.detail or problem.title or f"status {response.status}",
        code=problem.code,
        status=response.status,
        hint=problem.hint,
        conflict=problem.conflict,
        version=problem.version,
        transaction_id=problem.transaction_id,
        request_id=problem.instance,
        errors=tuple(f"{error.where}: {error.why}" for error in problem.errors),
        error_class=None if known is None else PROBLEMS[Code(problem.code)].condition,
    )


def _problem(response: Response) -> _Problem | None:
    """The problem, if it is one of this service, to whichever request."""
    if response.media_type != PROBLEM_MEDIA_TYPE:
        return None
    try:
        problem = _PROBLEM.decode(response.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    is_own = problem.type == PROBLEM_TYPE_PREFIX + problem.code
    return problem if is_own and problem.status == response.status else None


def _told_by_another(response: Response, problem: _Problem | None, *, request_id: str) -> str:
    if problem is None:
        return (
            f"expected a problem from the service, found status {response.status} "
            f"with {excerpt(response.body)}"
        )
    return (
        f"expected an answer to request {request_id}, found one to {excerpt(problem.instance)} "
        f"(status {response.status}, code {excerpt(problem.code)}); whatever is between here and "
        "the service has to pass X-Request-Id on as it is"
    )


def _class_of(classes: Mapping[int, type[TidegateError]], status: int) -> type[TidegateError]:
    return classes.get(status, ServiceUnavailable if status >= 500 else UnexpectedAnswer)
