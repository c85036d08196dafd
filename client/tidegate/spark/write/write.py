"""Writing a Spark DataFrame into a table in one commit."""

import json
import warnings
from collections.abc import Sequence

from pyspark.sql import DataFrame

from tidegate.active import check_none_active
from tidegate.errors import InvalidProposal, InvalidRequest, TidegateError
from tidegate.handle import TableHandle
from tidegate.models import DataFile, Receipt
from tidegate.spark.application import table_of
from tidegate.spark.errors import InvalidRows, StorageError
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.tables.predicates import partitions_matching, prunable
from tidegate.spark.write.conform import conform
from tidegate.spark.write.files import writable_layout
from tidegate.spark.write.staging import DataFiles, TransactionFolder, private_folder
from tidegate.transaction import Transaction
from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.actions import PartitionValues


def append(
    table: TableHandle,
    df: DataFrame,
    *,
    user_metadata: str | None = None,
    txn: tuple[str, int] | None = None,
) -> Receipt | None:
    """Append the DataFrame's rows in one commit; None where there was nothing to commit.

    Columns go by name in any case, missing nullable ones become null, and values are stored as
    Spark's ANSI store assignment has it. `user_metadata` is kept in the history. `txn`, an
    application id and a version of its own, makes the append happen once: where the table has
    recorded that version already, or a later one, nothing is written.

    Raises `UnsupportedTable`, `UnsupportedSession`, `SchemaMismatch`, `InvalidRows` and
    `StorageError` before anything is proposed, what else the Spark job failed of, and what
    `Transaction.commit` raises. After a definite error no file stays behind. In the `with` block of
    a transaction of the table it raises `TransactionActive`, because it would be one of its own.
    """
    check_none_active(table.id)
    transaction = Transaction(table_of(table, df.sparkSession))
    layout = writable_layout(transaction)
    with private_folder(transaction, layout, df.sparkSession) as folder:
        if txn is not None and transaction.txn_version(txn[0]) >= txn[1]:
            return None
        files = folder.write(conform(df, layout))
        if txn is not None:
            transaction.set_transaction(*txn)
        elif not files.adds:
            # Delta, too, leaves a commit without actions out of the log.
            return None
        return commit_write(transaction, files, mode="Append", user_metadata=user_metadata)


def overwrite(
    table: TableHandle,
    df: DataFrame,
    *,
    replace_where: str | None = None,
    user_metadata: str | None = None,
    transaction: Transaction | None = None,
) -> Receipt | None:
    """Replace the table's rows by the DataFrame's in one commit; None where both have none.

    With `replace_where`, Spark SQL text over the partition columns, only the partitions for which
    it is true are replaced, and every row of the DataFrame must lie in one of them. Either way a
    concurrent commit that touches what is replaced is a conflict. `transaction`, a new one of the
    table's own, says at which version the table was read; without it that is the latest. Where
    work has landed under an id that it brings along, by an earlier run or by one that was faster,
    the receipt of that is returned, and of this one nothing is in the table.

    Raises what `append` does, `InvalidRequest` for a predicate that names other columns, and
    `ValueError` for a transaction of another table.
    """
    check_none_active(table.id, but=transaction)
    transaction = transaction or Transaction(table_of(table, df.sparkSession))
    if transaction.table.id != table.id:
        raise ValueError(
            f"expected a transaction of table {table.name}, found one of {transaction.table.name}"
        )
    if (first := transaction.landed()) is not None:
        return first
    layout = writable_layout(transaction)
    check_removable(layout)
    with private_folder(transaction, layout, df.sparkSession) as folder:
        replaced = _replaced(transaction, layout, df, replace_where)
        files = folder.write(conform(df, layout))
        if replace_where is not None:
            _check_inside(files, layout, df, replace_where)
        if not files.adds and not replaced:
            return None
        try:
            return commit_write(
                transaction,
                files,
                mode="Overwrite",
                removed=replaced,
                predicate=replace_where,
                user_metadata=user_metadata,
            )
        except InvalidProposal as refusal:
            if refusal.code != Code.TRANSACTION_ID_REUSED:
                raise
            return _landed_meanwhile(transaction, folder, refusal)


def check_removable(layout: TableLayout) -> None:
    """Raise what the service would, but before anything is written."""
    if layout.properties.append_only:
        raise InvalidProposal(
            f"table {layout.name} is append-only (delta.appendOnly)",
            code=Code.APPEND_ONLY,
            definite=True,
        )


def commit_write(
    transaction: Transaction,
    files: DataFiles,
    *,
    mode: str,
    removed: Sequence[DataFile] = (),
    predicate: str | None = None,
    user_metadata: str | None = None,
) -> Receipt:
    """Propose the files and removals as Delta's operation WRITE. `mode` is Delta's word for it."""
    transaction.add(files.adds)
    transaction.remove(removed)
    partition_columns = list(transaction.head.partition_columns)
    parameters = {"mode": mode, "partitionBy": json.dumps(partition_columns)}
    if predicate is not None:
        parameters["predicate"] = predicate
    metrics = {
        "numFiles": str(len(files.adds)),
        "numOutputRows": str(files.rows),
        "numOutputBytes": str(files.size),
    }
    if removed:
        metrics["numRemovedFiles"] = str(len(removed))
        metrics["numRemovedBytes"] = str(sum(file.size for file in removed))
    return transaction.commit(
        "WRITE", parameters=parameters, metrics=metrics, user_metadata=user_metadata
    )


def outside(partition: PartitionValues, where: str) -> InvalidRows:
    """The error for rows in a partition that is not among those which are overwritten."""
    found = ", ".join(f"{name}={value}" for name, value in partition.items())
    return InvalidRows(
        f"the DataFrame has rows in the partition {found}, where {where} is not true"
    )


def _landed_meanwhile(
    transaction: Transaction, folder: TransactionFolder, refusal: InvalidProposal
) -> Receipt:
    """The receipt of the attempt that was faster. The files of this one are deleted where the
    commit that landed does not name them: an id lands once, so no other commit can."""
    table = transaction.table
    try:
        first = table.transaction_status(transaction.id).commit
    except TidegateError as error:
        raise refusal from error
    if first is None:
        raise refusal
    try:
        is_own = folder.is_named_by(table.commit_bytes(first.version))
    except TidegateError:
        # Nobody can tell any more, as after the log was cleaned up: VACUUM finds the files.
        return first
    if not is_own:
        try:
            folder.delete()
        except (OSError, StorageError) as error:
            warnings.warn(
                f"transaction {transaction.id} landed before, and the files of this attempt "
                f"could not be deleted: {error}",
                stacklevel=3,
            )
    return first


def _replaced(
    transaction: Transaction, layout: TableLayout, df: DataFrame, where: str | None
) -> list[DataFile]:
    """The files to remove, recorded as read."""
    if where is None:
        return transaction.filter_files()
    if not layout.partition_columns:
        raise InvalidRequest(
            f"replace_where takes a predicate over partition columns, and table {layout.name} "
            "has none",
            code=Code.INVALID_PREDICATE,
            definite=True,
        )
    spark = df.sparkSession
    # Asked first, so that a predicate that nobody can read is refused for an empty table, too.
    partitions_matching([], where, layout, spark)
    files = transaction.filter_files(prunable(where, layout, spark))
    partitions = list({tuple(file.partition_values.items()): None for file in files})
    matches = partitions_matching([dict(values) for values in partitions], where, layout, spark)
    chosen = {values for values, match in zip(partitions, matches, strict=True) if match}
    return [file for file in files if tuple(file.partition_values.items()) in chosen]


def _check_inside(files: DataFiles, layout: TableLayout, df: DataFrame, where: str) -> None:
    partitions = [add.partition_values for add in files.adds]
    for values, match in zip(
        partitions,
        partitions_matching(partitions, where, layout, df.sparkSession),
        strict=True,
    ):
        if not match:
            raise outside(values, f"replace_where ({where})")
