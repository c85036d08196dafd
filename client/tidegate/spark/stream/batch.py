"""A batch of a streaming query as one commit, which lands once.

The commit records the query's id and the batch's number as application transaction (PROTOCOL.md,
"Transaction Identifiers"), as Delta's sink does. Spark repeats a batch whose end it has not noted,
under the same number and with the same rows; the repetition finds that number recorded.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from tidegate.errors import ConflictError
from tidegate.models import DataFile, Receipt
from tidegate.spark.data_files.staging import DataFiles
from tidegate.spark.errors import CheckpointBehind, UnsupportedSession
from tidegate.spark.write_options import WriteOptions
from tidegate.transaction_handle import TransactionHandle

OPERATION = "STREAMING UPDATE"


class OutputMode(StrEnum):
    """What a batch's rows are: further ones, or all that there are from then on."""

    APPEND = "append"
    COMPLETE = "complete"

    @classmethod
    def parse(cls, text: str) -> "OutputMode":
        """The mode of this name, in any case. Raises `UnsupportedSession`."""
        try:
            return cls(text.lower())
        except ValueError:
            raise UnsupportedSession(
                f"{text} output mode not supported; expected append or complete",
                error_class="DELTA_UNSUPPORTED_OUTPUT_MODE",
            ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamBatch:
    """The batch `number` of the query `app_id`."""

    app_id: str
    number: int
    mode: OutputMode

    def has_landed(self, transaction: TransactionHandle) -> bool:
        """Whether the table has recorded this batch already. What is found is recorded as read: of
        two runs of one batch the slower one conflicts.

        Raises `CheckpointBehind` where a later batch is recorded: this one's rows may be others
        than those that landed under its number.
        """
        recorded = transaction.txn_version(self.app_id)
        self._check_not_passed(recorded, transaction)
        return recorded == self.number

    def replaced(self, transaction: TransactionHandle) -> list[DataFile]:
        """The files that the batch replaces, recorded as read."""
        return transaction.filter_files() if self.mode is OutputMode.COMPLETE else []

    def commit(
        self,
        transaction: TransactionHandle,
        files: DataFiles,
        *,
        removed: list[DataFile],
        options: WriteOptions,
        metrics: Mapping[str, str] = MappingProxyType({}),
    ) -> Receipt | None:
        """Propose the batch as Delta's operation STREAMING UPDATE; `metrics` are further ones. None
        where there is nothing to commit, and where a faster run of the same batch has landed:
        nothing of this one has then, nor will.

        Raises what `Transaction.commit` raises, and `CheckpointBehind` as `has_landed` does.
        """
        if not files.adds and not removed and transaction.metadata == transaction.head.metadata:
            return None
        flags = {
            "canMergeSchema": options.merge_schema,
            "canOverwriteSchema": options.overwrite_schema,
        }
        transaction.set_transaction(self.app_id, self.number)
        transaction.remove(removed)
        transaction.add(files.adds)
        try:
            return transaction.commit(
                OPERATION,
                parameters={
                    "outputMode": self.mode.capitalize(),
                    "queryId": self.app_id,
                    "epochId": str(self.number),
                    **{name: "true" for name, is_set in flags.items() if is_set},
                },
                metrics={
                    "numAddedFiles": str(len(files.adds)),
                    "numOutputRows": str(files.rows),
                    "numOutputBytes": str(files.size),
                    "numRemovedFiles": str(len(removed)),
                    **metrics,
                },
                user_metadata=options.user_metadata,
            )
        except ConflictError:
            recorded = transaction.table.txn_version(self.app_id)
            self._check_not_passed(recorded, transaction)
            if recorded < self.number:
                raise
            return None

    def _check_not_passed(self, recorded: int, transaction: TransactionHandle) -> None:
        if recorded > self.number:
            raise CheckpointBehind(
                f"batch {self.number} of the stream {self.app_id} is behind table "
                f"{transaction.table.name}, which has recorded batch {recorded} of it: its "
                "checkpoint was set back or is a new one, or another driver works under this id"
            )
