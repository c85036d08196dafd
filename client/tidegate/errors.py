"""What the client raises: one class per thing the caller can do next.

TidegateError
├── ConflictError                        read the newer version and do the work again
│   ├── ConcurrentAppendException
│   ├── ConcurrentDeleteReadException
│   ├── ConcurrentDeleteDeleteException
│   ├── MetadataChangedException
│   ├── ProtocolChangedException
│   ├── ConcurrentTransactionException
│   └── ReadVersionTooOld
├── InvalidRequest                       correct it: as it is, it can never succeed
│   ├── InvalidProposal
│   └── TooLarge
├── TableAlreadyExists                   take another name or location, or use that table
├── NotFound                             the thing named is not there
│   ├── TableNotFound
│   ├── VersionNotFound
│   └── TransactionNotFound
├── TransactionAborted                   begin a new transaction
├── TransactionCommitted                 too late to abort: it landed as `version`
├── TransactionClosed                    begin a new transaction: this object is used up
├── TransactionActive                    write through the active one, or leave its block first
├── Unauthenticated                      give a valid token
├── PermissionDenied                     ask for the permission
├── UnexpectedAnswer                     look at what answers at the URL
├── ServiceUnavailable                   try again later
│   ├── MaxCommitRetriesExceeded         try again when fewer commit, or allow more attempts
│   └── TableQuarantined                 ask whoever runs the service to look at the table
└── CommitStateUnknown                   it may have landed: ask by its transaction id

The conflicts bear the names that Delta Spark gives them. Service errors come from problem
bodies (RFC 9457); `problems.py` holds the table of codes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from tidegate_protocol.base.text import excerpt


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictInfo:
    """The commit that won, and what it had in common with the transaction that lost.

    `timestamp` in ms. `partition` maps columns to their text (None is a null partition).
    `application_id`, `engine_info` and `user_metadata` are of the winner's commitInfo, `app_id` is
    the application whose transaction both have.
    """

    version: int
    operation: str | None = None
    timestamp: int | None = None
    application_id: str | None = None
    engine_info: str | None = None
    user_metadata: str | None = None
    path: str | None = None
    partition: Mapping[str, str | None] | None = None
    app_id: str | None = None
    domain: str | None = None

    def __str__(self) -> str:
        parts = [f"version {self.version} ({self.operation or 'operation not recorded'})"]
        if writer := self.application_id or self.engine_info:
            parts[0] += f" by {writer}"
        if self.user_metadata:
            parts.append(f"userMetadata {excerpt(self.user_metadata)}")
        if self.partition:
            values = ", ".join(f"{name}={value}" for name, value in self.partition.items())
            parts.append(f"partition {values}")
        if self.app_id is not None:
            parts.append(f"application {self.app_id}")
        if self.domain is not None:
            parts.append(f"metadata domain {self.domain}")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts:
    """How often something was tried before it was given up, and how long that took.

    `versions` are those that whole writes conflicted with, None where it is not known; of one
    proposal that was sent again and again, the one that it had read and the latest by the end, as
    far as the service still told it.
    """

    count: int
    seconds: float
    versions: tuple[int | None, ...] = ()

    def __str__(self) -> str:
        return f"{self.count} {'attempts' if self.count > 1 else 'attempt'} in {self.seconds:.1f} s"


class TidegateError(Exception):
    """Every error of this package.

    `definite` is True where the request is known to have had no effect and never to have one:
    for a proposal, that its transaction id and body will never land. Only then may the data
    files it names be deleted. False says nothing either way.

    `code` is the problem's stable code (`tidegate_protocol.base.problems.Code`, or one that a newer
    service knows), `status` the HTTP status, `hint` the next step, `request_id` what to quote
    to an operator; each is None where there was no such answer. `errors` lists every part of
    the request that is wrong, by JSON Pointer, where there are such. `error_class` is what Spark or
    Delta calls the error, where they have one for it; the text begins with it. `attempts` tells of
    what was given up after it was tried again and again.
    """

    next_step: ClassVar[str] = ""

    def __init__(
        self,
        detail: str,
        *,
        code: str | None = None,
        status: int | None = None,
        hint: str | None = None,
        conflict: ConflictInfo | None = None,
        version: int | None = None,
        transaction_id: str | None = None,
        request_id: str | None = None,
        errors: tuple[str, ...] = (),
        definite: bool = False,
        error_class: str | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.code = code
        self.status = status
        self.hint = hint
        self.conflict = conflict
        self.version = version
        self.transaction_id = transaction_id
        self.request_id = request_id
        self.errors = errors
        self.definite = definite
        self.error_class = error_class
        self.attempts: Attempts | None = None

    def __str__(self) -> str:
        sentences = [_sentence(self.detail)]
        if self.error_class is not None:
            sentences.insert(0, f"[{self.error_class}]")
        if self.conflict is not None:
            sentences.append(_sentence(f"The winner is {self.conflict}"))
        if len(self.errors) > 1:
            sentences.append(_sentence(f"All that is wrong: {'; '.join(self.errors)}"))
        if next_step := self.hint or self.next_step:
            sentences.append(_sentence(f"Next: {next_step}"))
        marks = [
            f"{name} {value}"
            for name, value in (
                ("code", self.code),
                ("transaction", self.transaction_id),
                ("request", self.request_id),
            )
            if value is not None
        ]
        if marks:
            sentences.append(f"[{', '.join(marks)}]")
        return " ".join(sentences)


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


class ConflictError(TidegateError):
    """A concurrent commit got there first; `conflict` names it."""

    next_step = "read the table at its latest version and do the transaction again"


class ConcurrentAppendException(ConflictError):
    """Files were added that this transaction should have read."""


class ConcurrentDeleteReadException(ConflictError):
    """A file that this transaction read was removed."""


class ConcurrentDeleteDeleteException(ConflictError):
    """A file that this transaction removes was removed already."""


class MetadataChangedException(ConflictError):
    """The table's metadata was changed."""


class ProtocolChangedException(ConflictError):
    """The table's protocol was changed."""


class ConcurrentTransactionException(ConflictError):
    """An application transaction or a metadata domain of this transaction was written."""


class ReadVersionTooOld(ConflictError):
    """The history since the read version is gone, so nobody can tell whether it conflicts."""


class InvalidRequest(TidegateError):
    """The request can never succeed as it is; `code` says what is wrong with it."""

    next_step = "correct what the message names"


class InvalidProposal(InvalidRequest):
    """The transaction's actions can never be committed to this table; `code` says why."""

    next_step = "correct the actions and propose them in a new transaction"


class TooLarge(InvalidRequest):
    """The request is larger than the service takes."""

    next_step = "split the work into smaller transactions"


class TableAlreadyExists(TidegateError):
    """A table of this name or location exists already."""

    next_step = "use that table, or choose another name and location"


class NotFound(TidegateError):
    """The thing named does not exist."""


class TableNotFound(NotFound):
    """There is no such table."""

    next_step = "check the name, or create the table"


class VersionNotFound(NotFound):
    """The table has no such version."""


class TransactionNotFound(NotFound):
    """The service knows no such transaction id. It may land yet."""


class TransactionAborted(TidegateError):
    """The transaction id was aborted and will never land."""

    next_step = "do the work again in a new transaction"


class TransactionCommitted(TidegateError):
    """The transaction cannot be aborted, because it landed as `version`."""


class TransactionClosed(TidegateError):
    """This transaction object has come to its end and takes nothing more.

    `definite` stays False: what it was used for before may well have landed.
    """

    next_step = "begin a new transaction"


class TransactionActive(TidegateError):
    """The thread is in the `with` block of another transaction of the table."""

    next_step = (
        "write through the active transaction (write_files, add, commit), or leave its `with` "
        "block first"
    )


class Unauthenticated(TidegateError):
    """The service does not know who is asking (401)."""

    next_step = "give a valid token to tidegate.connect, or in TIDEGATE_TOKEN"


class PermissionDenied(TidegateError):
    """The token does not allow this (403)."""

    next_step = "ask whoever runs the service for the permission"


class UnexpectedAnswer(TidegateError):
    """What answered is no Tidegate service, or one that does not know this client's calls."""

    next_step = "check the URL, and that client and service are of matching versions"


class ServiceUnavailable(TidegateError):
    """The service did not take the request in time, or could not be reached."""

    next_step = "try again later; the service recovers without a restart"


class MaxCommitRetriesExceeded(ServiceUnavailable):
    """The proposal was sent as often as the caller allows (`max_commit_attempts`), and nothing of
    it has landed or will. `attempts` tells of it."""

    next_step = "try again when fewer writers commit to the table, or allow more attempts"


class TableQuarantined(ServiceUnavailable):
    """The table's log and the service's index disagree; it is readable but takes no commits."""

    next_step = "ask whoever runs the service to look at the table"


class CommitStateUnknown(TidegateError):
    """The commit with `transaction_id` may or may not have landed. Delete nothing it names.

    Its cause (`__cause__`) is the last thing heard of it.
    """

    next_step = (
        "ask table.transaction_status(transaction_id), call commit again on the same "
        "transaction object, or end the doubt by table.abort_transaction(transaction_id)"
    )
