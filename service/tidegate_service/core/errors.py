"""What a use case raises: one class per thing the caller can do next.

ServiceError
├── Unauthenticated          the caller has to say who it is
├── Forbidden                the caller needs a right that it has not
├── NotFound                 the thing named does not exist
├── Refused                  the request can never succeed as it is
├── Unavailable              nothing is known to have happened; ask again later
│   ├── IndexUnavailable
│   ├── StorageUnavailable
│   ├── TableQuarantined
│   ├── ClockSkew
│   └── ShuttingDown
└── OutcomeUnknown           it may have happened; ask again with the same id
    ├── CommitStateUnknown
    └── StorageUnknown       (internal: a PUT without an answer; settled by the commit path)
"""

from tidegate_protocol.base.problems import Code
from tidegate_protocol.base.text import excerpt


class ServiceError(Exception):
    """Every error carries the problem code that the caller will see."""

    code: Code = Code.INTERNAL_ERROR

    def __init__(self, detail: str, *, code: Code | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        if code is not None:
            self.code = code


class Unauthenticated(ServiceError):
    """401: nobody, or not who it says."""

    code = Code.UNAUTHENTICATED


class Forbidden(ServiceError):
    """403: known, but without the right."""

    code = Code.FORBIDDEN


class NotFound(ServiceError):
    """404. `code` says what: table, version or transaction."""

    code = Code.TABLE_NOT_FOUND


class Refused(ServiceError):
    """409, 410, 413 or 422 by its code. `hint` is the next step, `errors` point into the body."""

    code = Code.INVALID_REQUEST

    def __init__(
        self,
        detail: str,
        *,
        code: Code | None = None,
        hint: str | None = None,
        version: int | None = None,
    ) -> None:
        super().__init__(detail, code=code)
        self.hint = hint
        self.version = version


class Overtaken(Refused):
    """While a staged commit waited, its version was taken. Whether its transaction has landed was
    not looked up."""

    code = Code.VERSION_TAKEN


class TableExists(Refused):
    code = Code.TABLE_EXISTS


class Unavailable(ServiceError):
    """503 with Retry-After."""

    code = Code.INDEX_UNAVAILABLE


class IndexUnavailable(Unavailable):
    code = Code.INDEX_UNAVAILABLE


class StorageUnavailable(Unavailable):
    code = Code.STORAGE_UNAVAILABLE


class TableQuarantined(Unavailable):
    code = Code.TABLE_QUARANTINED


class ClockSkew(Unavailable):
    code = Code.CLOCK_SKEW


class Backlog(Unavailable):
    """Too much of a table waits for publishing. The transaction id was looked up under the table's
    lock before, so no attempt under it has landed."""

    code = Code.BACKPRESSURE


class ShuttingDown(Unavailable):
    code = Code.SHUTTING_DOWN


class OutcomeUnknown(ServiceError):
    """503 with the transaction id: it may have landed."""

    code = Code.COMMIT_STATE_UNKNOWN


class CommitStateUnknown(OutcomeUnknown):
    def __init__(self, detail: str, *, transaction_id: str | None = None) -> None:
        super().__init__(detail)
        self.transaction_id = transaction_id


class StorageUnknown(OutcomeUnknown):
    code = Code.STORAGE_UNAVAILABLE


def root_cause(error: BaseException) -> str | None:
    """The first line of what an error was raised from in the end, for the log and whoever runs
    the service; never for a client. None where it has no cause."""
    cause = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    if cause is error:
        return None
    first_line, _, _ = str(cause).partition("\n")
    return f"{type(cause).__name__}: {excerpt(first_line)}"


def with_cause(error: ServiceError) -> str:
    """The error's detail, its root cause and its notes, which say what whoever runs the service can
    do: for the operator alone."""
    cause = root_cause(error)
    detail = error.detail if cause is None else f"{error.detail} ({cause})"
    return "; ".join([detail, *getattr(error, "__notes__", ())])
