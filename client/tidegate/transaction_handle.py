"""The general form of a write: read at one version, propose, land at a later one or not at all."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

from tidegate.active import activate, deactivate
from tidegate.answers import aborted
from tidegate.commit_stats import CommitTally
from tidegate.conflict_check import ConflictCheck, conflict_checked, explanation
from tidegate.errors import (
    ConflictError,
    InvalidProposal,
    InvalidRequest,
    TidegateError,
    TransactionAborted,
    TransactionCommitted,
    TransactionNotFound,
)
from tidegate.handle import TableHandle
from tidegate.models import Receipt, TableVersion
from tidegate.transaction_content import large_action
from tidegate.transaction_proposing import ProposingTransaction, TransactionState
from tidegate.version import ENGINE_INFO
from tidegate.wire.flow import RetryPolicy
from tidegate.wire.proposal import (
    abort_request,
    check_request,
    encode_proposal,
    patience,
    spooled_proposal,
)
from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.actions import Action
from tidegate_protocol.proposal.transaction import IsolationLevel, Proposal

_LAST_ATTEMPT = RetryPolicy(deadline_s=5.0, attempt_s=5.0)
"""For an abort on the way out of an exception, which must not be held up for long."""


class TransactionHandle(ProposingTransaction):
    """A transaction as the Spark code makes and takes it; users hold a `Transaction`."""

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
            in_doubt=transaction_id is not None,
        )

    def __repr__(self) -> str:
        return (
            f"Transaction(id={self.id!r}, table={self.table.name!r}, "
            f"read_version={self.read_version}, state={self._state.value!r})"
        )

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
        receipt = self._commit(
            self._proposal(
                operation,
                parameters=parameters,
                metrics=metrics,
                user_metadata=user_metadata,
                tags=tags,
                isolation_level=isolation_level,
                engine_info=engine_info,
            )
        )
        assert receipt is not None, "a commit is skipped only where it asked for that"
        return receipt

    def commit_if_needed(
        self,
        operation: str,
        *,
        parameters: Mapping[str, Any] | None = None,
        metrics: Mapping[str, Any] | None = None,
        user_metadata: str | None = None,
        tags: Mapping[str, str] | None = None,
        isolation_level: IsolationLevel | str | None = None,
        engine_info: str = ENGINE_INFO,
    ) -> Receipt | None:
        """As `commit`, and None where there is nothing to commit: a transaction without actions
        leaves the log as it is. As in Delta's `commitIfNeeded` it is recorded all the same where it
        is checked at `WriteSerializable`, under which what it has read matters to others."""
        return self._commit(
            self._proposal(
                operation,
                parameters=parameters,
                metrics=metrics,
                user_metadata=user_metadata,
                tags=tags,
                isolation_level=isolation_level,
                engine_info=engine_info,
                skip_if_empty=True,
            )
        )

    def commit_large(
        self,
        actions: Iterable[Action | Mapping[str, Any]],
        operation: str,
        *,
        parameters: Mapping[str, Any] | None = None,
        metrics: Mapping[str, Any] | None = None,
        user_metadata: str | None = None,
        tags: Mapping[str, str] | None = None,
        engine_info: str = ENGINE_INFO,
    ) -> Receipt:
        """As `commit`, of what is recorded already and of any number of further actions, which are
        taken one after the other and never held together: `add` actions, and others as `action`
        takes them, but no metaData.

        It is for commits that hardly race with others, such as those that make a whole table anew.
        As with Delta's `commitLarge`, none is moved past a commit that it might depend on: the
        whole table counts as read, at the level `Serializable`, so that a change of rows, columns
        or protocol by others since the read version is a `ConflictError`, and so is a file that
        they removed. Where the metadata is changed, it has to have been read: the service takes
        that for a look at the rows that new rules are about.

        What the iterable raises leaves the transaction open, and nothing is sent. Raises what
        `commit` does. After `CommitStateUnknown` the same call with the same actions sends the same
        proposal again.
        """
        began_s = self.table.connection.clock_s()
        self._is_proposed_again()
        if self._has_metadata and not self._whole_table:
            raise InvalidProposal(
                "expected a transaction that has read the whole table, because a large commit says "
                "so, and this one changes the metadata",
                code=Code.INVALID_ACTION,
                hint="call filter_files() or read_whole_table() first",
                definite=True,
            )
        proposal = self._proposal(
            operation,
            actions=(),
            parameters=parameters,
            metrics=metrics,
            user_metadata=user_metadata,
            tags=tags,
            isolation_level=IsolationLevel.SERIALIZABLE,
            engine_info=engine_info,
        )
        proposal = replace(proposal, reads=replace(proposal.reads, whole_table=True))
        tally = CommitTally()
        coming = tally.counted(chain(self._actions, map(large_action, actions)))
        with spooled_proposal(proposal, coming) as body:
            receipt = self._propose(body, tally, began_s=began_s)
        assert receipt is not None, "a commit is skipped only where it asked for that"
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

    def _commit(self, proposal: Proposal) -> Receipt | None:
        began_s = self.table.connection.clock_s()
        return self._propose(
            encode_proposal(proposal),
            CommitTally.of(proposal.actions),
            began_s=began_s,
            may_be_skipped=proposal.skip_if_empty,
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


@contextmanager
def left_at_the_end(transaction: TransactionHandle) -> Iterator[None]:
    """The end of a `with transaction:` block without its beginning, for work that is handed a
    transaction, which may be active already."""
    try:
        yield
    except BaseException as error:
        transaction._leave(error)
        raise
    transaction._leave(None)
