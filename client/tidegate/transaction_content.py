"""What a transaction has read of its table, and what it would change."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from tidegate.errors import InvalidProposal
from tidegate.handle import TableHandle
from tidegate.models import DataFile, TableVersion
from tidegate.new_table import check_metadata
from tidegate.schema_json import SchemaLike, schema_text
from tidegate.wire.proposal import removal
from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.actions import Action, Add, Metadata, Txn
from tidegate_protocol.log.codec import InvalidActionError, decode, with_fields
from tidegate_protocol.proposal.transaction import Reads


class TransactionContent(ABC):
    """What was read of a table at `read_version`, and the actions to commit on top of it.

    Every method raises `TransactionClosed` once nothing more is taken.
    """

    def __init__(self, table: TableHandle, head: TableVersion, *, transaction_id: str) -> None:
        self.id = transaction_id
        self.table = table
        self.head = head
        self._whole_table = False
        self._predicates: dict[str, None] = {}
        self._read_paths: set[str] = set()
        self._app_ids: set[str] = set()
        self._actions: list[Action] = []
        self._metadata = head.metadata
        self._has_metadata = False
        self._has_moved_marks = False
        self._has_written = False

    @property
    def read_version(self) -> int:
        """The version that everything is read at."""
        return self.head.version

    @property
    def metadata(self) -> Metadata:
        """The table's metadata as this transaction leaves it."""
        return self._metadata

    @property
    def has_actions(self) -> bool:
        """Whether a commit would say anything."""
        return bool(self._actions)

    @property
    @abstractmethod
    def is_open(self) -> bool:
        """Whether it still takes reads and actions."""

    @abstractmethod
    def _check_open(self) -> None:
        """Raise `TransactionClosed` where nothing more is taken."""

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

    def has_read(self, where: str) -> bool:
        """Whether the predicate is among what is recorded as read."""
        return self._whole_table or where in self._predicates

    def read_whole_table(self) -> None:
        """Record that every row was read, whichever way: any concurrent change will conflict."""
        self._check_open()
        self._whole_table = True

    def read_files(self, files: Iterable[DataFile]) -> None:
        """Record that live files were read, whichever way: a concurrent commit that removes one of
        them will conflict."""
        self._check_open()
        self._read_paths.update(file.path for file in _data_files(files))

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
        now_ms = self.table.connection.now_ms()
        self._actions.append(Txn(app_id=app_id, version=version, last_updated=now_ms))

    def add(self, files: Iterable[DataFile]) -> None:
        """Add data files that are already written below the table's location."""
        self._check_open()
        for file in _data_files(files):
            self._append(file)

    def remove(self, files: Iterable[DataFile], *, data_change: bool = True) -> None:
        """Remove live files. `data_change` False says that the table's rows stay the same,
        because other files that are added hold them (a rewrite)."""
        self._check_open()
        self._actions.extend(self.removals(_data_files(files), data_change=data_change))

    def removals(self, files: Iterable[DataFile], *, data_change: bool = True) -> Iterator[Action]:
        """What `remove` adds to the commit, one action after the other, for
        `Transaction.commit_large`."""
        now_ms = self.table.connection.now_ms()
        for file in files:
            yield removal(file, deletion_timestamp=now_ms, data_change=data_change)

    def update_metadata(
        self,
        *,
        schema: SchemaLike | None = None,
        set_properties: Mapping[str, str] | None = None,
        unset_properties: Iterable[str] = (),
        comment: str | None = None,
        partition_by: Sequence[str] | None = None,
    ) -> None:
        """Change the table's schema, properties, comment or partitioning; what is not named stays.
        A table that is partitioned otherwise is one whose files are all replaced.

        Once in a transaction, and before files are written or added, which are of the schema that
        there is by then: else `InvalidProposal`, as in Delta's `updateMetadata`. The rest of what a
        metaData or protocol action can say is for `action`.

        A CHECK constraint or generated column that is new has to be true of the rows that there
        are: the commit is refused unless the transaction has read the whole table, whose rows are
        then the caller's to check, or there are none. `Alter.add_constraint` does both. A new
        column is null in each row, and so is not NOT NULL where there are rows. SQL that no writer
        could evaluate is an `InvalidCommand`, where this process has a Spark session.
        """
        self._check_open()
        changes: dict[str, Any] = {}
        if schema is not None:
            changes["schemaString"] = schema_text(schema)
        if comment is not None:
            changes["description"] = comment
        if partition_by is not None:
            changes["partitionColumns"] = list(partition_by)
        gone = frozenset(unset_properties)
        if gone or set_properties:
            kept = {k: v for k, v in self._metadata.configuration.items() if k not in gone}
            changes["configuration"] = kept | dict(set_properties or {})
        if changes:
            self._append(with_fields(self._metadata, changes))

    def move_identity_marks(self, schema: SchemaLike) -> None:
        """Record how far identity columns have come: the schema as it is but for their marks. It is
        known only after files are written, so unlike any other change of the metadata, this
        comes then. The commit gets Delta's tag for it where it changes nothing else of the
        metadata: Delta believes the tag."""
        self._check_open()
        moved = with_fields(self._metadata, {"schemaString": schema_text(schema)})
        if self._has_metadata:
            self._actions = [
                moved if isinstance(action, Metadata) else action for action in self._actions
            ]
        else:
            self._actions.append(moved)
            self._has_moved_marks = True
        self._has_metadata = True
        self._metadata = moved

    def action(self, action: Mapping[str, Any] | Action) -> None:
        """Any one action, as such or as its log line has it: `{"domainMetadata": {...}}`.

        Raises `InvalidProposal` where a known kind of action has the wrong shape, and for a
        metaData where `update_metadata` does.
        """
        self._check_open()
        self._append(_action(action))

    def _append(self, action: Action) -> None:
        match action:
            case Add():
                self._has_written = True
            case Metadata():
                self._check_metadata_open()
                check_metadata(self._metadata, action)
                self._has_metadata = True
                self._metadata = action
        self._actions.append(action)

    def _check_metadata_open(self) -> None:
        if self._has_written:
            raise InvalidProposal(
                "Cannot update the metadata in a transaction that has already written data",
                code=Code.INVALID_ACTION,
                hint="update the metadata first; the files that are written next have its schema",
                definite=True,
            )
        if self._has_metadata:
            raise InvalidProposal(
                "Cannot change the metadata more than once in a transaction",
                code=Code.MULTIPLE_METADATA,
                hint="make all changes in one call of update_metadata",
                definite=True,
            )

    def _reads(self) -> Reads:
        return Reads(
            whole_table=self._whole_table,
            predicates=tuple(self._predicates),
            files=frozenset(self._read_paths),
            app_ids=frozenset(self._app_ids),
        )


def _data_files(files: Iterable[DataFile]) -> list[DataFile]:
    found = list(files)
    for file in found:
        if not isinstance(file, Add):
            raise TypeError(f"expected tidegate.DataFile, found {type(file).__name__}")
    return found


def large_action(action: Mapping[str, Any] | Action) -> Action:
    """An action of a commit that is never held as a whole. Raises `InvalidProposal` as
    `TransactionContent.action`, and for a metaData, which a transaction knows before."""
    found = _action(action)
    if isinstance(found, Metadata):
        raise InvalidProposal(
            "expected no metaData among the actions of a large commit, found one",
            code=Code.INVALID_ACTION,
            hint="update the metadata of the transaction before",
            definite=True,
        )
    return found


def _action(action: Mapping[str, Any] | Action) -> Action:
    if not isinstance(action, Mapping):
        return action
    try:
        return decode(msgspec.json.encode(dict(action)))
    except InvalidActionError as error:
        raise InvalidProposal(str(error), code=Code.INVALID_ACTION, definite=True) from None
