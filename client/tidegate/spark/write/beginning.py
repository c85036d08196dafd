"""Where a write begins: at the version that its rows were read from, with that recorded as read."""

from pyspark.sql import DataFrame

from tidegate.errors import InvalidRequest
from tidegate.handle import TableHandle
from tidegate.spark.application import table_of
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.tables.plans import OwnReads, own_reads, reads_a_past
from tidegate.spark.tables.refusals import check_rewritable
from tidegate.spark.write.repeats import own_rows_refused, refused
from tidegate.spark.write_options import FileOptions
from tidegate.transaction_content import TransactionContent
from tidegate.transaction_handle import TransactionHandle
from tidegate_protocol.base.problems import Code


def begun_for(table: TableHandle, df: DataFrame, *, removes: bool = False) -> TransactionHandle:
    """A transaction at the latest version; where the DataFrame reads the table as that which it has
    now, at the earliest version that it reads, with what it reads recorded. What others committed
    since is a conflict then, where it touches that.

    Raises `VersionNotFound` where the log of that version is gone, and, of a write that `removes`
    files, what `check_known` does.
    """
    table = table_of(table, df.sparkSession)
    transaction = TransactionHandle(table)
    head = transaction.head
    layout = TableLayout.of(name=head.name, location=head.location, metadata=head.metadata)
    reads = own_reads(df, layout)
    if reads is None:
        return transaction
    if removes:
        check_known(reads, layout)
    if reads.version is not None and reads.version < head.version:
        transaction = TransactionHandle(table, head=table.as_of(reads.version))
    record(transaction, reads)
    return transaction


def check_known(reads: OwnReads, layout: TableLayout) -> None:
    """Raise `InvalidRequest` where nothing says as of which version rows of the table's own were
    read: a write that begins at the latest one would remove what was committed in between."""
    if not reads.is_said:
        raise InvalidRequest(
            f"the DataFrame reads files of table {layout.name}, and its plan does not say of which "
            "version; expected rows of table.read in a session other than of Spark Connect",
            code=Code.INVALID_REQUEST,
            definite=True,
            hint="or: with t.transaction() as txn: t.overwrite(..., transaction=txn)",
        )


def join(transaction: TransactionContent, df: DataFrame, layout: TableLayout) -> None:
    """Have a transaction that has begun know what the DataFrame reads of its table.

    Raises `InvalidRequest` where that is of another version: what others committed between the two
    would be no conflict, or its rows be written once more.
    """
    reads = own_reads(df, layout, transaction=transaction.id)
    if reads is None:
        return
    begun = transaction.read_version
    for version in (reads.version, reads.latest):
        if version not in (None, begun):
            raise refused(
                f"the DataFrame reads table {layout.name} as of version {version}, and the "
                f"transaction began at version {begun}; expected rows that were read in it, or "
                f"table.transaction(version={version})"
            )
    record(transaction, reads)


def check_rewritten(df: DataFrame, layout: TableLayout, options: FileOptions) -> None:
    """Raise `UnsupportedTable` where rows would lose their ids (`check_rewritable`), and
    `InvalidRequest` where a write says that the table has its rows already (`dataChange`
    false), and the DataFrame reads them of a past, or of several versions. Nothing would check that
    the table has those rows: what others append is no conflict of such a write."""
    if options.data_change:
        return
    check_rewritable(layout)
    reads = own_reads(df, layout)
    if reads is not None and reads.version != reads.latest:
        found = f"versions {reads.version} to {reads.latest}"
    elif reads_a_past(df, layout):
        found = "a version or timestamp that was asked for"
    else:
        return
    raise refused(
        f"dataChange false says that the rows are in table {layout.name}, and the DataFrame reads "
        f"it as of {found}; expected rows of one read of the latest version, or a change of data"
    )


def record(transaction: TransactionContent, reads: OwnReads) -> None:
    """Have the transaction know what was read, as far as it is known of its version."""
    if reads.predicates is None or reads.version != transaction.read_version:
        transaction.read_whole_table()
        return
    for predicate in reads.predicates:
        if not transaction.has_read(predicate):
            transaction.filter_files(predicate)


def check_repeatable(table: TableHandle, df: DataFrame) -> None:
    """Raise `InvalidRequest` where the DataFrame reads the table itself: done again, the write
    would take rows of the version that was read for those of a later one."""
    head = table.head()
    layout = TableLayout.of(name=head.name, location=head.location, metadata=head.metadata)
    if own_reads(df, layout) is not None:
        raise own_rows_refused(head.name)
