"""How a transaction's actions are proposed, and what its end says of them."""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from enum import Enum
from functools import partial
from typing import Any

import msgspec

from tidegate.answers import Landing, landing_of, table_head
from tidegate.commit_stats import CommitStats, CommitTally
from tidegate.errors import Attempts, MaxCommitRetriesExceeded, TidegateError, TransactionClosed
from tidegate.handle import TableHandle
from tidegate.models import Receipt, TableVersion
from tidegate.progress import progress
from tidegate.transaction_content import TransactionContent
from tidegate.version import ENGINE_INFO
from tidegate.wire.exchange import Body
from tidegate.wire.flow import RetryPolicy
from tidegate.wire.pieces import digest_of
from tidegate.wire.proposal import MANY_ACTIONS, commit_request, patience
from tidegate.wire.tables import table_request
from tidegate_protocol.log.actions import Action
from tidegate_protocol.proposal.transaction import IsolationLevel, Proposal

_MARKS_MOVED = {"delta.identity.schemaUpdate": "true"}
"""Delta's tag of commits in whose metadata identity columns have come further. Where nothing else
of it is new, writers that give no numbers out do not conflict with it."""
_LAST_LOOK = RetryPolicy(deadline_s=5.0, attempt_s=5.0)
"""For what an error says beside, for which nobody should wait long, and which is asked once."""
_EXCEEDED = "DELTA_MAX_COMMIT_RETRIES_EXCEEDED"


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


class ProposingTransaction(TransactionContent):
    """A transaction from its beginning to the answer to its proposal.

    Every method raises `TransactionClosed` once the transaction has come to its end.
    """

    def __init__(
        self, table: TableHandle, head: TableVersion, *, transaction_id: str, in_doubt: bool
    ) -> None:
        """`in_doubt` says that the id may have been proposed before by somebody else."""
        super().__init__(table, head, transaction_id=transaction_id)
        self._in_doubt = in_doubt
        self._state = TransactionState.OPEN
        self._proposed: bytes | None = None
        self._interrupted = False
        self._began_s = table.connection.clock_s()

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
        return self._proposed is not None

    def _check_open(self) -> None:
        if self._state is not TransactionState.OPEN:
            raise TransactionClosed(
                f"transaction {self.id} is {self._state.value}; expected an open one",
                transaction_id=self.id,
            )

    def _proposal(
        self,
        operation: str,
        *,
        actions: tuple[Action, ...] | None = None,
        parameters: Mapping[str, Any] | None = None,
        metrics: Mapping[str, Any] | None = None,
        user_metadata: str | None = None,
        tags: Mapping[str, str] | None = None,
        isolation_level: IsolationLevel | str | None = None,
        engine_info: str = ENGINE_INFO,
        skip_if_empty: bool = False,
    ) -> Proposal:
        """What the transaction proposes; `actions` in the place of those that it has recorded."""
        return Proposal(
            transaction_id=self.id,
            operation=operation,
            actions=tuple(self._actions) if actions is None else actions,
            read_version=self.read_version,
            reads=self._reads(),
            operation_parameters=parameters or {},
            operation_metrics=metrics or {},
            isolation_level=None if isolation_level is None else IsolationLevel(isolation_level),
            user_metadata=user_metadata,
            tags={**(_MARKS_MOVED if self._has_moved_marks else {}), **(tags or {})},
            engine_info=engine_info,
            skip_if_empty=skip_if_empty,
        )

    def _propose(
        self, body: Body, tally: CommitTally, *, began_s: float, may_be_skipped: bool = False
    ) -> Receipt | None:
        """Send the proposal and return where it landed; None where it asked to be skipped if it is
        empty, and was. `tally` has counted the actions in it."""
        connection = self.table.connection
        digest = digest_of(body)
        proposed_before = self._is_proposed_again()
        if proposed_before and digest != self._proposed:
            raise TransactionClosed(
                f"transaction {self.id} was proposed before, with unknown outcome; expected the "
                "same call again, found another operation or other arguments",
                transaction_id=self.id,
            )
        self._proposed = digest
        self._state = TransactionState.UNKNOWN
        self._interrupted = True
        is_long = tally.actions >= MANY_ACTIONS
        said = f"committing {tally.actions} actions to {self.table.name}"
        try:
            with progress(lambda: said) if is_long else nullcontext():
                landing = connection.propose(
                    commit_request(self.table.id, body),
                    partial(landing_of, transaction_id=self.id, may_be_skipped=may_be_skipped),
                    transaction_id=self.id,
                    in_doubt=self._in_doubt or proposed_before,
                    policy=patience(connection.policy, actions=tally.actions),
                )
        except TidegateError as error:
            self._interrupted = False
            if error.definite:
                self._state = TransactionState.FAILED
            if error.attempts is not None:
                self._given_up(error, error.attempts, tally)
            raise
        self._interrupted = False
        if landing is None:
            # Nothing was written under this id by this call; by another's something may be.
            self._state = TransactionState.UNKNOWN if self._in_doubt else TransactionState.ABORTED
            return None
        self._state = TransactionState.COMMITTED
        connection.last_commits.note(self.table.id, landing.receipt.version)
        stats = self._stats(landing, tally, began_s=began_s)
        return msgspec.structs.replace(landing.receipt, stats=stats)

    def _is_proposed_again(self) -> bool:
        """Whether the outcome of an earlier proposal is unknown. Raises `TransactionClosed` where
        nothing may be proposed."""
        again = self._state is TransactionState.UNKNOWN and self.was_proposed
        if not again:
            self._check_open()
        return again

    def _given_up(self, error: TidegateError, attempts: Attempts, tally: CommitTally) -> None:
        """Have the error tell of the attempts. Raises `MaxCommitRetriesExceeded` in its place where
        nothing has landed, and nothing but the caller's bound kept it from being sent again."""
        if attempts.count != self.table.connection.policy.commit_attempts:
            error.attempts = replace(attempts, versions=(self.read_version,))
            error.add_note(f"Given up after {attempts}.")
            return
        latest = self._latest()
        error.attempts = replace(attempts, versions=(self.read_version, latest))
        told = (
            f"{attempts}, which are as many as max_commit_attempts allows. The transaction of "
            f"{tally.actions} actions began at version {self.read_version}, and the table "
            + ("does not answer any more" if latest is None else f"was at {latest} by then")
        )
        if not error.definite:
            error.add_note(f"Given up after {told}.")
            return
        exceeded = MaxCommitRetriesExceeded(
            f"the commit was not taken in {told}; the last answer was: {error.detail}",
            code=error.code,
            status=error.status,
            request_id=error.request_id,
            transaction_id=self.id,
            definite=True,
            error_class=_EXCEEDED,
        )
        exceeded.attempts = error.attempts
        raise exceeded from error

    def _latest(self) -> int | None:
        """The table's version, where the service tells it at once."""
        try:
            return self.table.connection.call(
                table_request(self.table.id), table_head, policy=_LAST_LOOK, max_attempts=1
            ).version
        except TidegateError:
            return None

    def _stats(self, landing: Landing, tally: CommitTally, *, began_s: float) -> CommitStats:
        receipt, totals = landing.receipt, landing.totals
        now_s = self.table.connection.clock_s()
        return CommitStats(
            start_version=self.read_version,
            commit_version=receipt.version,
            read_version=None if totals is None else totals.version,
            txn_duration_ms=round((now_s - self._began_s) * 1000),
            commit_duration_ms=round((now_s - began_s) * 1000),
            conflict_check_duration_ms=landing.check_ms,
            num_add=tally.adds,
            num_remove=tally.removes,
            num_set_transaction=tally.set_transactions,
            bytes_new=tally.bytes_new,
            num_files_total=None if totals is None else totals.num_files,
            size_in_bytes_total=None if totals is None else totals.size_bytes,
            num_cdc_files=tally.cdc_files,
            cdc_bytes_new=tally.cdc_bytes,
            num_absolute_paths_in_add=tally.absolute_paths,
            num_distinct_partitions_in_add=tally.partitions,
            num_partition_columns_in_table=len(self.metadata.partition_columns),
            isolation_level=receipt.isolation_level,
            num_of_domain_metadatas=tally.domains,
            txn_id=self.id,
        )
