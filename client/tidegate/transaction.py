"""The general form of a write: read at one version, propose, land at a later one or not at all."""

from collections.abc import Iterable, Mapping
from enum import Enum
from functools import partial
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import msgspec

from tidegate.errors import (
    InvalidProposal,
    TidegateError,
    TransactionAborted,
    TransactionClosed,
    TransactionCommitted,
    TransactionNotFound,
)
from tidegate.handle import TableHandle
from tidegate.models import DataFile, Receipt, TableHead, aborted, receipt_of
from tidegate.schema_json import SchemaLike, schema_text
from tidegate.version import ENGINE_INFO
from tidegate.wire.exchange import Body
from tidegate.wire.flow import RetryPolicy
from tidegate.wire.proposal import abort_request, commit_request, encode_proposal, patience, removal
from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.actions import Action, Add, Txn
from tidegate_protocol.log.codec import InvalidActionError, decode, with_fields
from tidegate_protocol.proposal.transaction import IsolationLevel, Proposal, Reads

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


class Transaction:
    """What was read of a table at `read_version`, and the actions to commit on top of it.

    `id` names it for ever: every retry carries it, so it lands at most once. As a context
    manager, leaving by an exception gives the transaction up: actions that were never proposed
    are dropped, and a proposal that was interrupted is aborted as far as the service can still be
    reached. After a `CommitStateUnknown` nothing is, because that commit may yet be asked for.

    Not safe to share between threads. Every method raises `TransactionClosed` once the
    transaction has come to its end.
    """

    def __init__(
        self,
        table: TableHandle,
        *,
        head: TableHead | None = None,
        transaction_id: str | None = None,
    ) -> None:
        """At the version of `head`, or at the latest one. An id of the caller's own may have been
        proposed before by somebody else."""
        head = table.head() if head is None else head
        self.id = str(uuid4()) if transaction_id is None else transaction_id
        self.table = table
        self.head = head
        self._connection = table.connection
        self._in_doubt = transaction_id is not None
        self._state = TransactionState.OPEN
        self._whole_table = False
        self._predicates: dict[str, None] = {}
        self._read_paths: set[str] = set()
        self._app_ids: set[str] = set()
        self._actions: list[Action] = []
        self._metadata = head.metadata
        self._body: Body | None = None
        self._interrupted = False

    def __repr__(self) -> str:
        return (
            f"Transaction(id={self.id!r}, table={self.table.name!r}, "
            f"read_version={self.read_version}, state={self._state.value!r})"
        )

    @property
    def read_version(self) -> int:
        """The version that everything is read at."""
        return self.head.version

    @property
    def state(self) -> TransactionState:
        """Where it is in its life; only `FAILED` and `ABORTED` say that it will never land."""
        return self._state

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

    def filter_files(self, where: str | None = None) -> list[DataFile]:
        """The files that may hold rows matching a Spark SQL predicate, at the read version.

        Records the predicate and the files as read: a concurrent commit that adds rows there,
        or removes one of the files, will conflict. Without a predicate the whole table is read.
        """
        self._check_open()
        scan = self.table.scan(where, version=self.read_version)
        if where is None:
            self._whole_table = True
        else:
            self._predicates[where] = None
            self._read_paths.update(file.path for file in scan.files)
        return list(scan.files)

    def read_whole_table(self) -> None:
        """Record that every row was read, whichever way: any concurrent change will conflict."""
        self._check_open()
        self._whole_table = True

    def txn_version(self, app_id: str) -> int:
        """The last version that an application recorded, -1 for none, recorded as read: a
        concurrent commit of the same application will conflict."""
        self._check_open()
        version = self.table.txn_version(app_id)
        self._app_ids.add(app_id)
        return version

    def set_transaction(self, app_id: str, version: int) -> None:
        """Record an application's version along with this commit (PROTOCOL.md, "Transaction
        Identifiers")."""
        self._check_open()
        now_ms = self._connection.now_ms()
        self._actions.append(Txn(app_id=app_id, version=version, last_updated=now_ms))

    def add(self, files: Iterable[DataFile]) -> None:
        """Add data files that are already written below the table's location."""
        self._check_open()
        self._actions.extend(_data_files(files))

    def remove(self, files: Iterable[DataFile], *, data_change: bool = True) -> None:
        """Remove live files. `data_change` False says that the table's rows stay the same,
        because other files that are added hold them (a rewrite)."""
        self._check_open()
        now_ms = self._connection.now_ms()
        self._actions.extend(
            removal(file, deletion_timestamp=now_ms, data_change=data_change)
            for file in _data_files(files)
        )

    def update_metadata(
        self,
        *,
        schema: SchemaLike | None = None,
        set_properties: Mapping[str, str] | None = None,
        unset_properties: Iterable[str] = (),
        comment: str | None = None,
    ) -> None:
        """Change the table's schema, properties or comment; what is not named stays.

        Called again, it goes on from what the first call made. The rest of what a metaData or
        protocol action can say is for `action`.
        """
        self._check_open()
        changes: dict[str, Any] = {}
        if schema is not None:
            changes["schemaString"] = schema_text(schema)
        if comment is not None:
            changes["description"] = comment
        gone = frozenset(unset_properties)
        if gone or set_properties:
            kept = {k: v for k, v in self._metadata.configuration.items() if k not in gone}
            changes["configuration"] = kept | dict(set_properties or {})
        if not changes:
            return
        metadata = with_fields(self._metadata, changes)
        self._actions = [action for action in self._actions if action is not self._metadata]
        self._actions.append(metadata)
        self._metadata = metadata

    def action(self, action: Mapping[str, Any]) -> None:
        """Any one action as its log line has it: `{"domainMetadata": {...}}`.

        Raises `InvalidProposal` where a known kind of action has the wrong shape.
        """
        self._check_open()
        try:
            self._actions.append(decode(msgspec.json.encode(dict(action))))
        except InvalidActionError as error:
            raise InvalidProposal(str(error), code=Code.INVALID_ACTION, definite=True) from None

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
        proposal = Proposal(
            transaction_id=self.id,
            operation=operation,
            actions=tuple(self._actions),
            read_version=self.read_version,
            reads=Reads(
                whole_table=self._whole_table,
                predicates=tuple(self._predicates),
                files=frozenset(self._read_paths),
                app_ids=frozenset(self._app_ids),
            ),
            operation_parameters=parameters or {},
            operation_metrics=metrics or {},
            isolation_level=None if isolation_level is None else IsolationLevel(isolation_level),
            user_metadata=user_metadata,
            tags=tags or {},
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
            receipt = self._connection.propose(
                commit_request(self.table.id, body),
                partial(receipt_of, transaction_id=self.id),
                transaction_id=self.id,
                in_doubt=self._in_doubt or proposed_before,
                policy=patience(self._connection.policy, actions=len(proposal.actions)),
            )
        except TidegateError as error:
            self._interrupted = False
            if error.definite:
                self._state = TransactionState.FAILED
            raise
        self._interrupted = False
        self._state = TransactionState.COMMITTED
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
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._state is TransactionState.OPEN:
            # The service has not heard of this id from here, so there is nothing to tombstone; of
            # an id that was brought along it may have heard from elsewhere.
            self._state = TransactionState.UNKNOWN if self._in_doubt else TransactionState.ABORTED
        elif self._interrupted and error is not None:
            try:
                self._abort(_LAST_ATTEMPT)
            except TidegateError as what:
                error.add_note(f"Transaction {self.id} could not be aborted: {what}")

    def _abort(self, policy: RetryPolicy | None) -> None:
        try:
            self._connection.call(abort_request(self.table.id, self.id), aborted, policy=policy)
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


def _data_files(files: Iterable[DataFile]) -> list[DataFile]:
    found = list(files)
    for file in found:
        if not isinstance(file, Add):
            raise TypeError(f"expected tidegate.DataFile, found {type(file).__name__}")
    return found
