"""The problem codes that the service answers with and the client raises on.

A code is the stable name of one thing a caller can do next. Both ends import this
table, so that a code cannot exist on one side only (RFC 9457).
"""

from dataclasses import dataclass
from enum import StrEnum

PROBLEM_MEDIA_TYPE = "application/problem+json"
PROBLEM_TYPE_PREFIX = "urn:tidegate:problem:"
"""Before the code in a problem's `type`: by it a problem of this service is told from others'."""


class Code(StrEnum):
    """Every problem code, in the order of the HTTP contract."""

    # 409: checked against the log and lost.
    CONCURRENT_APPEND = "concurrent-append"
    CONCURRENT_DELETE_READ = "concurrent-delete-read"
    CONCURRENT_DELETE_DELETE = "concurrent-delete-delete"
    METADATA_CHANGED = "metadata-changed"
    PROTOCOL_CHANGED = "protocol-changed"
    CONCURRENT_TRANSACTION = "concurrent-transaction"
    TABLE_EXISTS = "table-exists"
    READ_VERSION_TOO_OLD = "read-version-too-old"
    TRANSACTION_COMMITTED = "transaction-committed"
    VERSION_TAKEN = "version-taken"
    REQUIREMENT_FAILED = "requirement-failed"
    # 410
    TRANSACTION_ABORTED = "transaction-aborted"
    # 404
    TABLE_NOT_FOUND = "table-not-found"
    VERSION_NOT_FOUND = "version-not-found"
    TRANSACTION_NOT_FOUND = "transaction-not-found"
    ROUTE_NOT_FOUND = "route-not-found"
    # 422: can never be committed.
    DUPLICATE_ACTION = "duplicate-action"
    PARTITION_MISMATCH = "partition-mismatch"
    MULTIPLE_METADATA = "multiple-metadata"
    MULTIPLE_PROTOCOL = "multiple-protocol"
    MISSING_METADATA = "missing-metadata"
    APPEND_ONLY = "append-only"
    SET_TRANSACTION_CONFLICT = "set-transaction-conflict"
    DELETION_VECTOR_MISSING_NUM_RECORDS = "deletion-vector-missing-num-records"
    DELETION_VECTOR_TIGHT_BOUNDS = "deletion-vector-tight-bounds"
    DELETION_VECTORS_DISALLOWED = "deletion-vectors-disallowed"
    DELETION_VECTOR_WITHOUT_REMOVE = "deletion-vector-without-remove"
    PROTOCOL_DOWNGRADE = "protocol-downgrade"
    INVALID_PROTOCOL = "invalid-protocol"
    UNSUPPORTED_FEATURE = "unsupported-feature"
    INVALID_ACTION = "invalid-action"
    INVALID_PREDICATE = "invalid-predicate"
    INVALID_PATH = "invalid-path"
    INVALID_SCHEMA = "invalid-schema"
    INVALID_NAME = "invalid-name"
    INVALID_LOCATION = "invalid-location"
    BROKEN_LOG = "broken-log"
    INVALID_REQUEST = "invalid-request"
    TRANSACTION_ID_REUSED = "transaction-id-reused"
    # 400, 401, 403, 405, 413, 415, 421, 429: this copy was not executed.
    MALFORMED_HTTP = "malformed-http"
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    METHOD_NOT_ALLOWED = "method-not-allowed"
    TOO_LARGE = "too-large"
    UNSUPPORTED_MEDIA_TYPE = "unsupported-media-type"
    HOST_NOT_ALLOWED = "host-not-allowed"
    BACKPRESSURE = "backpressure"
    # 503: says nothing about the outcome; ask again with the same id.
    COMMIT_STATE_UNKNOWN = "commit-state-unknown"
    STORAGE_UNAVAILABLE = "storage-unavailable"
    INDEX_UNAVAILABLE = "index-unavailable"
    TABLE_QUARANTINED = "table-quarantined"
    CLOCK_SKEW = "clock-skew"
    SHUTTING_DOWN = "shutting-down"
    DEADLINE_EXCEEDED = "deadline-exceeded"
    # 500: a defect of ours; says nothing about the outcome.
    INTERNAL_ERROR = "internal-error"


@dataclass(frozen=True, slots=True)
class Problem:
    """What a code means on the wire.

    `error_class` is the name Delta Spark gives the same conflict, and `condition` what Delta's
    `delta-error-classes.json` calls the error; None where Delta has none. `retryable` says that the
    same request may succeed later, as far as the service knows without an operator's doing.
    """

    status: int
    title: str
    retryable: bool = False
    error_class: str | None = None
    condition: str | None = None


PROBLEMS: dict[Code, Problem] = {
    Code.CONCURRENT_APPEND: Problem(
        409,
        "Files were added by a concurrent commit that this transaction should have read",
        error_class="ConcurrentAppendException",
        condition="DELTA_CONCURRENT_APPEND",
    ),
    Code.CONCURRENT_DELETE_READ: Problem(
        409,
        "A file that this transaction read was removed by a concurrent commit",
        error_class="ConcurrentDeleteReadException",
        condition="DELTA_CONCURRENT_DELETE_READ",
    ),
    Code.CONCURRENT_DELETE_DELETE: Problem(
        409,
        "A file that this transaction removes was removed by a concurrent commit",
        error_class="ConcurrentDeleteDeleteException",
        condition="DELTA_CONCURRENT_DELETE_DELETE",
    ),
    Code.METADATA_CHANGED: Problem(
        409,
        "The table's metadata was changed by a concurrent commit",
        error_class="MetadataChangedException",
        condition="DELTA_METADATA_CHANGED",
    ),
    Code.PROTOCOL_CHANGED: Problem(
        409,
        "The table's protocol was changed by a concurrent commit",
        error_class="ProtocolChangedException",
        condition="DELTA_PROTOCOL_CHANGED",
    ),
    Code.CONCURRENT_TRANSACTION: Problem(
        409,
        "An application transaction or metadata domain was written by a concurrent commit",
        error_class="ConcurrentTransactionException",
        condition="DELTA_CONCURRENT_TRANSACTION",
    ),
    Code.TABLE_EXISTS: Problem(
        409,
        "A table of this name or location exists already",
        condition="DELTA_TABLE_ALREADY_EXISTS",
    ),
    Code.READ_VERSION_TOO_OLD: Problem(
        409, "The history since the read version is no longer in the index"
    ),
    Code.TRANSACTION_COMMITTED: Problem(409, "The transaction has landed and cannot be aborted"),
    Code.VERSION_TAKEN: Problem(409, "Another commit landed as this version"),
    Code.REQUIREMENT_FAILED: Problem(409, "The table is not what the request requires"),
    Code.TRANSACTION_ABORTED: Problem(410, "The transaction id was aborted and will never land"),
    Code.TABLE_NOT_FOUND: Problem(404, "There is no such table", condition="DELTA_TABLE_NOT_FOUND"),
    Code.VERSION_NOT_FOUND: Problem(
        404, "The table has no such version", condition="DELTA_VERSION_NOT_FOUND"
    ),
    Code.TRANSACTION_NOT_FOUND: Problem(404, "The table knows no such transaction id"),
    Code.ROUTE_NOT_FOUND: Problem(404, "There is nothing at this path"),
    Code.DUPLICATE_ACTION: Problem(
        422,
        "The same file appears in more than one file action",
        condition="DELTA_DUPLICATE_ACTIONS_FOUND",
    ),
    Code.PARTITION_MISMATCH: Problem(
        422, "Partition values do not agree with the partition columns"
    ),
    Code.MULTIPLE_METADATA: Problem(422, "More than one metaData action in a commit"),
    Code.MULTIPLE_PROTOCOL: Problem(422, "More than one protocol action in a commit"),
    Code.MISSING_METADATA: Problem(
        422,
        "The first commit of a table needs a metaData action",
        condition="DELTA_METADATA_ABSENT",
    ),
    Code.APPEND_ONLY: Problem(
        422, "The table is append-only", condition="DELTA_CANNOT_MODIFY_APPEND_ONLY"
    ),
    Code.SET_TRANSACTION_CONFLICT: Problem(422, "Two txn actions of one application disagree"),
    Code.DELETION_VECTOR_MISSING_NUM_RECORDS: Problem(
        422,
        "A file with a deletion vector needs numRecords in its statistics",
        condition="DELTA_DELETION_VECTOR_MISSING_NUM_RECORDS",
    ),
    Code.DELETION_VECTOR_TIGHT_BOUNDS: Problem(
        422,
        "A file with a deletion vector needs tightBounds = false in its statistics",
        condition="DELTA_ADDING_DELETION_VECTORS_WITH_TIGHT_BOUNDS_DISALLOWED",
    ),
    Code.DELETION_VECTORS_DISALLOWED: Problem(
        422,
        "The table does not allow new deletion vectors",
        condition="DELTA_ADDING_DELETION_VECTORS_DISALLOWED",
    ),
    Code.DELETION_VECTOR_WITHOUT_REMOVE: Problem(
        422, "A file would be live with two deletion vectors"
    ),
    Code.PROTOCOL_DOWNGRADE: Problem(
        422,
        "The protocol of a table cannot be lowered",
        condition="DELTA_INVALID_PROTOCOL_DOWNGRADE",
    ),
    Code.INVALID_PROTOCOL: Problem(422, "The protocol action is not valid"),
    Code.UNSUPPORTED_FEATURE: Problem(422, "The protocol needs a feature that is not supported"),
    Code.INVALID_ACTION: Problem(422, "An action is not valid"),
    Code.INVALID_PREDICATE: Problem(422, "A predicate cannot be read"),
    Code.INVALID_PATH: Problem(422, "A path is not allowed"),
    Code.INVALID_SCHEMA: Problem(422, "The schema is not valid"),
    Code.INVALID_NAME: Problem(422, "The table name is not valid"),
    Code.INVALID_LOCATION: Problem(422, "The location is not allowed"),
    Code.BROKEN_LOG: Problem(422, "The table's log cannot be read, or is not the table's"),
    Code.INVALID_REQUEST: Problem(422, "The request is not valid"),
    Code.TRANSACTION_ID_REUSED: Problem(
        422, "The transaction id was used before with another body"
    ),
    Code.MALFORMED_HTTP: Problem(400, "The bytes received are not an HTTP request"),
    Code.UNAUTHENTICATED: Problem(401, "The request needs a valid token"),
    Code.FORBIDDEN: Problem(403, "The token does not allow this"),
    Code.METHOD_NOT_ALLOWED: Problem(405, "The method is not allowed at this path"),
    Code.TOO_LARGE: Problem(413, "The request is too large"),
    Code.UNSUPPORTED_MEDIA_TYPE: Problem(415, "The media type is not supported"),
    Code.HOST_NOT_ALLOWED: Problem(421, "The service is not to be called by this host name"),
    Code.BACKPRESSURE: Problem(429, "Too many requests are waiting", retryable=True),
    Code.COMMIT_STATE_UNKNOWN: Problem(
        503, "The commit may or may not have landed", retryable=True
    ),
    Code.STORAGE_UNAVAILABLE: Problem(503, "The object store does not answer", retryable=True),
    Code.INDEX_UNAVAILABLE: Problem(503, "The index database does not answer", retryable=True),
    Code.TABLE_QUARANTINED: Problem(
        503, "The table is quarantined: its log and the index disagree"
    ),
    Code.CLOCK_SKEW: Problem(
        503, "The clocks of this instance and of the index disagree", retryable=True
    ),
    Code.SHUTTING_DOWN: Problem(503, "This instance is stopping", retryable=True),
    Code.DEADLINE_EXCEEDED: Problem(
        503, "The request took longer than its deadline", retryable=True
    ),
    Code.INTERNAL_ERROR: Problem(500, "The service met a defect of its own", retryable=True),
}
