"""Writing a Spark DataFrame into a table in one commit."""

import json
import warnings
from collections.abc import Mapping, Sequence
from time import monotonic
from types import MappingProxyType

from pyspark.sql import DataFrame, SparkSession

from tidegate.active import check_none_active
from tidegate.errors import InvalidProposal, TidegateError
from tidegate.handle import TableHandle
from tidegate.models import DataFile, Receipt
from tidegate.spark.columns.schema_change import change_schema
from tidegate.spark.data_files.staging import DataFiles, TransactionFolder, private_folder
from tidegate.spark.errors import StorageError
from tidegate.spark.expressions.resolution import recorded
from tidegate.spark.expressions.where import ReplacePredicate
from tidegate.spark.jobs.passes import Passes
from tidegate.spark.session_settings import settings_of, with_session
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.tables.row_ids import kept_tag
from tidegate.spark.tables.zones import session_zone
from tidegate.spark.write.beginning import begun_for, check_repeatable, check_rewritten, join
from tidegate.spark.write.files import writable_layout
from tidegate.spark.write.idempotence import is_recorded, reset
from tidegate.spark.write.repeats import refused, repeated
from tidegate.spark.write.replaced import check_inside, files_of_partitions, replaced_files
from tidegate.spark.write.replaced_rows import is_over_partitions
from tidegate.spark.write.rows import write_replacing, write_rows
from tidegate.spark.write_options import OptionValue, WriteOptions, options_of
from tidegate.transaction_handle import TransactionHandle
from tidegate_protocol.base.problems import PROBLEMS, Code

_OPERATION = "WRITE"
_REWRITE = (
    "with t.transaction() as txn: "
    "t.overwrite(t.read(spark).coalesce(1), transaction=txn, dataChange=False)"
)


def append(
    table: TableHandle,
    df: DataFrame,
    *,
    user_metadata: str | None = None,
    txn: tuple[str, int] | None = None,
    partition_by: Sequence[str] | None = None,
    retries: int = 0,
    options: Mapping[str, OptionValue] = MappingProxyType({}),
) -> Receipt | None:
    """Append the DataFrame's rows in one commit; None where there was nothing to commit.

    Columns go by name in any case, missing nullable ones become null, and values are stored as
    Spark's ANSI store assignment has it. `user_metadata` is kept in the history. `txn`, an
    application id and a version of its own, makes the append happen once: where the table has
    recorded that version already, or a later one, nothing is written. `partition_by` says how the
    table is expected to be partitioned. After a conflict the whole append is done again, `retries`
    times at most. `options` are those of
    `WriteOptions`, by Delta's names; Delta's settings of the session hold where they are not given
    (`with_session`). Where the DataFrame's plan reads the table, the append is no blind one: it
    begins at the version that was read, and what was read is recorded (`begun_for`).

    Raises `InvalidRequest` for options, `UnsupportedTable`, `UnsupportedSession`, `SchemaMismatch`,
    `InvalidRows`, `StorageError` and what `begun_for` raises before anything is proposed, what else
    the Spark job failed of, and what `Transaction.commit` raises. After a definite error no file
    stays behind. In the `with` block of a transaction of the table it raises `TransactionActive`,
    because it would be one of its own.
    """
    if retries:
        check_repeatable(table, df)
    given = options_of(options, user_metadata=user_metadata, txn=txn)
    said = with_session(given, settings_of(df.sparkSession))
    chosen = WriteOptions.parse(said, is_overwrite=False)
    receipt = repeated(
        lambda: _append(table, df, chosen, partition_by), retries=retries, clock_s=monotonic
    )
    reset(df.sparkSession, chosen.txn)
    return receipt


def _append(
    table: TableHandle, df: DataFrame, chosen: WriteOptions, partition_by: Sequence[str] | None
) -> Receipt | None:
    check_none_active(table.id)
    transaction = begun_for(table, df)
    change_schema(transaction, df.schema, chosen, partition_by=partition_by)
    layout = writable_layout(transaction)
    check_rewritten(df, layout, chosen.files)
    spark = df.sparkSession
    with (
        Passes(spark, operation=_OPERATION, table=layout.name) as passes,
        private_folder(transaction, layout, spark) as folder,
    ):
        if is_recorded(transaction, chosen.txn):
            return None
        passes.writes_rows()
        files = write_rows(transaction, folder, df, chosen.files)
        metrics = passes.metrics()
        passes.commits(len(files.adds))
        return commit_write(transaction, files, mode="Append", options=chosen, metrics=metrics)


def overwrite(
    table: TableHandle,
    df: DataFrame,
    *,
    replace_where: str | None = None,
    user_metadata: str | None = None,
    txn: tuple[str, int] | None = None,
    transaction: TransactionHandle | None = None,
    partition_by: Sequence[str] | None = None,
    retries: int = 0,
    options: Mapping[str, OptionValue] = MappingProxyType({}),
) -> Receipt | None:
    """Replace the table's rows by the DataFrame's in one commit; None where both have none
    and a given `transaction` holds nothing else.

    With `replace_where`, Spark SQL text, only the rows for which it is true are replaced, and it
    must be true of every row of the DataFrame. Over partition columns alone it replaces whole
    partitions; over others, what stays of the files that hold such rows is written again. With the
    option `partitionOverwriteMode` `dynamic` the partitions in which the DataFrame has rows are
    replaced. Either way a concurrent commit that touches what is replaced is a conflict.
    `transaction`, a new one of the table's own, says at which version the table was read; without
    it that is the latest, or the one that the DataFrame is of where `Table.read` of the same table
    is part of it (`begun_for`). Where work has landed under an id that it brings along, by an
    earlier run or by one that was faster, the receipt of that is returned, and of this one nothing
    is in the table.

    `txn`, `partition_by`, `retries` and `options` are as in `append`, and with `overwriteSchema`
    the table is partitioned by other columns from then on; `dataChange` false, for a rewrite, needs
    a `transaction`, in which its rows were read. Raises what `append` does, `InvalidRequest` for a
    predicate that names other columns, and `ValueError` for a transaction of another table.
    """
    if retries:
        if transaction is not None:
            raise refused("retries begin at later versions; expected them without a transaction")
        check_repeatable(table, df)
    given = options_of(options, user_metadata=user_metadata, txn=txn)
    settings = settings_of(df.sparkSession)
    said = with_session(given, settings, is_overwrite=True, replace_where=replace_where)
    chosen = WriteOptions.parse(said, is_overwrite=True, replace_where=replace_where)
    if transaction is None:
        chosen.check_changes_data(instead=_REWRITE)

    def once() -> Receipt | None:
        return _overwrite(
            table,
            df,
            chosen,
            replace_where=replace_where,
            transaction=transaction,
            partition_by=partition_by,
        )

    # A given transaction is not for a second time.
    is_own = transaction is None
    receipt = repeated(once, retries=retries, clock_s=monotonic) if is_own else once()
    reset(df.sparkSession, chosen.txn)
    return receipt


def _overwrite(
    table: TableHandle,
    df: DataFrame,
    chosen: WriteOptions,
    *,
    replace_where: str | None,
    transaction: TransactionHandle | None,
    partition_by: Sequence[str] | None,
) -> Receipt | None:
    check_none_active(table.id, but=transaction)
    is_given = transaction is not None
    transaction = transaction or begun_for(table, df, removes=True)
    if transaction.table.id != table.id:
        raise ValueError(
            f"expected a transaction of table {table.name}, found one of {transaction.table.name}"
        )
    if (first := transaction.landed()) is not None:
        return first
    change_schema(transaction, df.schema, chosen, partition_by=partition_by)
    layout = writable_layout(transaction)
    check_removable(layout)
    if is_given:
        join(transaction, df, layout)
        check_rewritten(df, layout, chosen.files)
    is_dynamic = chosen.is_dynamic and bool(layout.partition_columns)
    if is_dynamic:
        chosen.check_one_says_what(replace_where)
    spark = df.sparkSession
    where = None if replace_where is None else _predicate(transaction, replace_where, spark)
    by_rows = None if where is None or is_over_partitions(where, layout) else where
    with (
        Passes(spark, operation=_OPERATION, table=layout.name) as passes,
        private_folder(transaction, layout, spark) as folder,
    ):
        if is_recorded(transaction, chosen.txn):
            return None
        metrics: dict[str, str] = {}
        replaced: Sequence[DataFile]
        if by_rows is not None:
            files, found = write_replacing(
                transaction, folder, df, by_rows, passes=passes, options=chosen.files
            )
            replaced = found.files
            metrics = found.metrics | {"numOutputRows": str(files.rows - found.copied)}
        else:
            replaced = [] if is_dynamic else replaced_files(transaction, layout, where)
            passes.writes_rows()
            files = write_rows(transaction, folder, df, chosen.files)
            if where is not None:
                check_inside(files, layout, where)
            if is_dynamic:
                zone = session_zone(spark)
                replaced = files_of_partitions(transaction, layout, files.adds, zone=zone)
        metrics |= passes.metrics()
        passes.commits(len(files.adds) + len(replaced))
        try:
            return commit_write(
                transaction,
                files,
                mode="Overwrite",
                removed=replaced,
                predicate=replace_where,
                options=chosen,
                is_dynamic=is_dynamic,
                metrics=metrics,
            )
        except InvalidProposal as refusal:
            if refusal.code != Code.TRANSACTION_ID_REUSED:
                raise
            return _landed_meanwhile(transaction, folder, refusal)


def _predicate(transaction: TransactionHandle, text: str, spark: SparkSession) -> ReplacePredicate:
    """Over the columns that the table has at the read version, of which the rows that go are."""
    head = transaction.head
    layout = TableLayout.of(name=head.name, location=head.location, metadata=head.metadata)
    return ReplacePredicate.of(spark, text, layout)


def check_removable(layout: TableLayout) -> None:
    """Raise what the service would, but before anything is written."""
    if layout.properties.append_only:
        raise InvalidProposal(
            f"table {layout.name} is append-only (delta.appendOnly)",
            code=Code.APPEND_ONLY,
            definite=True,
            error_class=PROBLEMS[Code.APPEND_ONLY].condition,
        )


def commit_write(
    transaction: TransactionHandle,
    files: DataFiles,
    *,
    mode: str,
    options: WriteOptions,
    removed: Sequence[DataFile] = (),
    predicate: str | None = None,
    is_dynamic: bool = False,
    metrics: Mapping[str, str] = MappingProxyType({}),
) -> Receipt | None:
    """Propose the files and removals as Delta's operation WRITE; None where there is nothing to
    commit. `mode` is Delta's word for it, and `metrics` are further ones."""
    if options.txn is not None:
        transaction.set_transaction(*options.txn)
    transaction.add(files.adds)
    transaction.remove(removed, data_change=options.files.data_change)
    partition_columns = list(transaction.metadata.partition_columns)
    parameters = {"mode": mode, "partitionBy": json.dumps(partition_columns)}
    if predicate is not None:
        parameters["predicate"] = recorded(predicate)
    flags = {
        "canMergeSchema": options.merge_schema,
        "canOverwriteSchema": options.overwrite_schema,
        "isDynamicPartitionOverwrite": is_dynamic,
    }
    parameters |= {name: "true" for name, is_set in flags.items() if is_set}
    found = {
        "numFiles": str(len(files.adds)),
        "numOutputRows": str(files.rows),
        "numOutputBytes": str(files.size),
    }
    if removed:
        found["numRemovedFiles"] = str(len(removed))
        found["numRemovedBytes"] = str(sum(file.size for file in removed))
    return transaction.commit_if_needed(
        _OPERATION,
        parameters=parameters,
        metrics=found | dict(metrics),
        user_metadata=options.user_metadata,
        # Others write the same rows into other files, under new ids.
        tags=kept_tag(transaction.head.metadata) if options.files.data_change else None,
    )


def _landed_meanwhile(
    transaction: TransactionHandle, folder: TransactionFolder, refusal: InvalidProposal
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
