"""The general form of a write: read at one version, propose, land at a later one or not at all."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from functools import partial
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

from tidegate.active import activate, deactivate
from tidegate.conflict_check import ConflictCheck, conflict_checked, explanation
from tidegate.errors import (
    ConflictError,
    InvalidRequest,
    TidegateError,
    TransactionAborted,
    TransactionClosed,
    TransactionCommitted,
    TransactionNotFound,
)
from tidegate.handle import TableHandle
from tidegate.models import Receipt, TableVersion, aborted, receipt_of
from tidegate.transaction_content import TransactionContent
from tidegate.version import ENGINE_INFO
from tidegate.wire.exchange import Body
from tidegate.wire.flow import RetryPolicy
from tidegate.wire.proposal import (
    abort_request,
    check_request,
    commit_request,
    encode_proposal,
    patience,
)
from tidegate_protocol.proposal.transaction import IsolationLevel, Proposal

_MARKS_MOVED = {"delta.identity.schemaUpdate": "true"}
"""Delta's tag of commits in whose metadata identity columns have come further. Where nothing else
of it is new, writers that give no numbers out do not conflict with it."""
_LAST_ATTEMPT = RetryPolicy(deadline_s=5.0, attempt_s=5.0)
"""For an abort on the way out of an exception, which must not be held up for long."""


class TransactionState(Enum):
    """Where a transaction is in its life.

    Nothing of a `FAILED` or `ABORTED` one has landed or ever will, so the data files that only
    it names may be deleted. `UNKNOWN` lasts while a proposal is under way and after one whose
    outcome never came to be known; files of such a one must be kept. `COMMITTED` speaks of the
    id: what `landed` found may be the work of somebody else.
    """

    OPEN = "open"
    UNKNOWN = "unknown"
    COMMITTED = "committed"
    FAILED = "failed"
    ABORTED = "aborted"


class Transaction(TransactionContent):
    """What was read of a table at `read_version`, and the actions to commit on top of it.

    `id` names it for ever: every retry carries it, so it lands at most once. As a context
    manager, it is the one transaction of its table that is active in the thread: `Table.read` joins
    it, and entering a second one raises `TransactionActive`. Leaving by an exception gives the
    transaction up: actions that were never proposed are dropped, and a proposal that was
    interrupted is aborted as far as the service can still be reached. After a `CommitStateUnknown`
    nothing is, because that commit may yet be asked for.

    Not safe to share between threads. Every method raises `TransactionClosed` once the
    transaction has come to its end.
    """

    def __init__(
        self,
        table: TableHandle,
        *,
        head: TableVersion | None = None,
        transaction_id: str | None = None,
    ) -> None:
        """At the version of `head`, or at the latest one. An id of the caller's own may have been
        proposed before by somebody else."""
        super().__init__(
            table,
            table.head() if head is None else head,
            transaction_id=str(uuid4()) if transaction_id is None else transaction_id,
        )
        self._in_doubt = transaction_id is not None
        self._state = TransactionState.OPEN
        self._body: Body | None = None
        self._interrupted = False

    def __repr__(self) -> str:
        return (
            f"Transaction(id={self.id!r}, table={self.table.name!r}, "
            f"read_version={self.read_version}, state={self._state.value!r})"
        )

    @property
    def state(self) -> TransactionState:
        """Where it is in its life; only `FAILED` and `ABORTED` say that it will never land."""
        return self._state

    @property
    def is_open(self) -> bool:
        """Whether it still takes reads and actions."""
        return self._state is TransactionState.OPEN

    @property
    def was_proposed(self) -> bool:
        """Whether its actions may have been sent. Before that, no commit can name what they do."""
        return self._body is not None

    def landed(self) -> Receipt | None:
        """The receipt of what landed before under this id, which the caller brought along,
        whatever its actions were: the work is done. None where the service knows of nothing; a
        proposal of somebody else may be on its way. Raises `TransactionAborted`."""
        self._check_open()
        if not self._in_doubt:
            return None
        try:
            status = self.table.transaction_status(self.id)
        except TransactionNotFound:
            return None
        if status.state == "aborted":
            self._state = TransactionState.ABORTED
            raise TransactionAborted(
                f"transaction {self.id} was aborted", transaction_id=self.id, definite=True
            )
        if status.commit is not None:
            self._state = TransactionState.COMMITTED
        return status.commit

    def conflict_check(
        self, operation: str = "WRITE", *, isolation_level: IsolationLevel | str | None = None
    ) -> ConflictCheck:
        """Ask what `commit` would come to now. Nothing is written, and the transaction goes on.

        Raises what `commit` would: a `ConflictError` that names the winner, or `InvalidProposal`.
        A later commit may still conflict.
        """
        self._check_open()
        proposal = self._proposal(operation, isolation_level=isolation_level)
        return self.table.connection.call(
            check_request(self.table.id, encode_proposal(proposal)),
            partial(conflict_checked, transaction_id=self.id),
            policy=patience(self.table.connection.policy, actions=len(proposal.actions)),
        )

    def explain(
        self, operation: str = "WRITE", *, isolation_level: IsolationLevel | str | None = None
    ) -> str:
        """What was read, what would be committed, and what `conflict_check` says of it, as text. A
        conflict or a refusal is part of the text; other errors are raised."""
        verdict: ConflictCheck | TidegateError
        try:
            verdict = self.conflict_check(operation, isolation_level=isolation_level)
        except (ConflictError, InvalidRequest) as error:
            verdict = error
        proposal = self._proposal(operation, isolation_level=isolation_level)
        return explanation(proposal, table=self.table.name, verdict=verdict)

    def commit(
        self,
        operation: str,
        *,
        parameters: Mapping[str, Any] | None = None,
        metrics: Mapping[str, Any] | None = None,
        user_metadata: str | None = None,
        tags: Mapping[str, str] | None = None,
        isolation_level: IsolationLevel | str | None = None,
        engine_info: str = ENGINE_INFO,
    ) -> Receipt:
        """Propose the actions and return where they landed.

        `operation` is Delta's name for it (`WRITE`, `DELETE`, `MERGE`, ...); `parameters` and
        `metrics` are for the history. The table's own isolation level holds where none is given,
        and only a stricter one may be.

        Raises a `ConflictError` that names the winner, `InvalidProposal`, another definite error,
        or `CommitStateUnknown`. After the latter, the same call sends the same proposal again.
        """
        proposal = self._proposal(
            operation,
            parameters=parameters,
            metrics=metrics,
            user_metadata=user_metadata,
            tags=tags,
            isolation_level=isolation_level,
            engine_info=engine_info,
        )
        body = encode_proposal(proposal)
        proposed_before = self._state is TransactionState.UNKNOWN and self._body is not None
        if not proposed_before:
            self._check_open()
        elif body != self._body:
            raise TransactionClosed(
                f"transaction {self.id} was proposed before, with unknown outcome; expected the "
                "same call again, found another operation or other arguments",
                transaction_id=self.id,
            )
        self._body = body
        self._state = TransactionState.UNKNOWN
        self._interrupted = True
        try:
            receipt = self.table.connection.propose(
                commit_request(self.table.id, body),
                partial(receipt_of, transaction_id=self.id),
                transaction_id=self.id,
                in_doubt=self._in_doubt or proposed_before,
                policy=patience(self.table.connection.policy, actions=len(proposal.actions)),
            )
        except TidegateError as error:
            self._interrupted = False
            if error.definite:
                self._state = TransactionState.FAILED
            raise
        self._interrupted = False
        self._state = TransactionState.COMMITTED
        self.table.connection.last_commits.note(self.table.id, receipt.version)
        return receipt

    def abort(self) -> None:
        """See to it that this transaction never lands.

        Raises `TransactionCommitted` where it has landed, of which `commit` may not have heard.
        """
        if self._state in (TransactionState.FAILED, TransactionState.ABORTED):
            return
        if self._state is TransactionState.COMMITTED:
            raise TransactionCommitted(f"transaction {self.id} has landed", transaction_id=self.id)
        self._abort(None)

    def __enter__(self) -> Self:
        activate(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        deactivate(self)
        self._leave(error)

    def _leave(self, error: BaseException | None) -> None:
        if self._state is TransactionState.OPEN:
            # The service has not heard of this id from here, so there is nothing to tombstone; of
            # an id that was brought along it may have heard from elsewhere.
            self._state = TransactionState.UNKNOWN if self._in_doubt else TransactionState.ABORTED
        elif self._interrupted and error is not None:
            try:
                self._abort(_LAST_ATTEMPT)
            except TidegateError as what:
                error.add_note(f"Transaction {self.id} could not be aborted: {what}")

    def _proposal(
        self,
        operation: str,
        *,
        parameters: Mapping[str, Any] | None = None,
        metrics: Mapping[str, Any] | None = None,
        user_metadata: str | None = None,
        tags: Mapping[str, str] | None = None,
        isolation_level: IsolationLevel | str | None = None,
        engine_info: str = ENGINE_INFO,
    ) -> Proposal:
        return Proposal(
            transaction_id=self.id,
            operation=operation,
            actions=tuple(self._actions),
            read_version=self.read_version,
            reads=self._reads(),
            operation_parameters=parameters or {},
            operation_metrics=metrics or {},
            isolation_level=None if isolation_level is None else IsolationLevel(isolation_level),
            user_metadata=user_metadata,
            tags={**(_MARKS_MOVED if self._has_moved_marks else {}), **(tags or {})},
            engine_info=engine_info,
        )

    def _abort(self, policy: RetryPolicy | None) -> None:
        try:
            self.table.connection.call(
                abort_request(self.table.id, self.id), aborted, policy=policy
            )
        except TransactionCommitted:
            self._state = TransactionState.COMMITTED
            raise
        self._state = TransactionState.ABORTED
        self._interrupted = False

    def _check_open(self) -> None:
        if self._state is not TransactionState.OPEN:
            raise TransactionClosed(
                f"transaction {self.id} is {self._state.value}; expected an open one",
                transaction_id=self.id,
            )


@contextmanager
def left_at_the_end(transaction: Transaction) -> Iterator[None]:
    """The end of a `with transaction:` block without its beginning, for work that is handed a
    transaction, which may be active already."""
    try:
        yield
    except BaseException as error:
        transaction._leave(error)
        raise
    transaction._leave(None)
