"""A table, as users hold it: its handle, transactions, and Spark's reads and writes."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from tidegate.models import Receipt, TableVersion
from tidegate.table_commands import TableCommands
from tidegate.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Table(TableCommands):
    """A handle on one table: its `id` and `location` never change, and everything else is asked
    of the service when it is wanted.

    Handles come from `Lake.table`, `Lake.tables` and `Lake.create_table`. Every method raises
    `TableNotFound` once the service has forgotten the table, even where a new one has its name.
    """

    def transaction(
        self,
        *,
        transaction_id: str | None = None,
        head: TableVersion | None = None,
        version: int | None = None,
    ) -> Transaction:
        """Begin a transaction at the latest version, at an earlier `version`, or at the one that
        `head` has, of an earlier `head()` of this table: what has changed since then is checked as
        a conflict.

        In a `with` block it is active in the thread: `read` joins it, and `append`, `overwrite` and
        the `with` block of a second transaction of the table raise `TransactionActive`.

        A `transaction_id` of the caller's own names work that may be done again after a crash:
        it lands at most once, `Transaction.landed` tells whether it has, and as it may have been
        proposed before, its outcome counts as unknown until the service answers for this very id.

        Raises `VersionNotFound`, and `ValueError` for both a head and a version.
        """
        if version is not None:
            if head is not None:
                raise ValueError("expected a head or a version to begin at, found both")
            head = self.as_of(version)
        return Transaction(self, head=head, transaction_id=transaction_id)

    def append(
        self,
        df: "DataFrame",
        *,
        user_metadata: str | None = None,
        txn: tuple[str, int] | None = None,
        partition_by: Sequence[str] | None = None,
        retries: int = 0,
        **options: str | int | bool,
    ) -> Receipt | None:
        """Append a Spark DataFrame's rows in one commit; None where there was nothing to commit.

        `options` are Delta's write options by their names, such as `mergeSchema=True`; others are
        refused. See `tidegate.spark.write.write.append`. Needs the `spark` extra."""
        from tidegate.spark.write import write  # noqa: PLC0415 - the HTTP client works without Spark

        return write.append(
            self,
            df,
            user_metadata=user_metadata,
            txn=txn,
            partition_by=partition_by,
            retries=retries,
            options=options,
        )

    def insert(
        self,
        spark: "SparkSession",
        values: Sequence[Sequence[str]],
        *,
        columns: Sequence[str] | None = None,
        user_metadata: str | None = None,
        retries: int = 0,
    ) -> Receipt | None:
        """Append rows of Spark SQL expressions, as `INSERT INTO ... VALUES` does: for the named
        columns, or for all in their order. `DEFAULT` stands for a column's default. `retries` are
        as in `append`. See `tidegate.spark.write.insert`. Needs the `spark` extra."""
        from tidegate.spark.write import insert  # noqa: PLC0415 - as above

        return insert.insert(
            self, spark, values, columns=columns, user_metadata=user_metadata, retries=retries
        )

    def overwrite(
        self,
        df: "DataFrame",
        *,
        replace_where: str | None = None,
        user_metadata: str | None = None,
        txn: tuple[str, int] | None = None,
        transaction: Transaction | None = None,
        partition_by: Sequence[str] | None = None,
        retries: int = 0,
        **options: str | int | bool,
    ) -> Receipt | None:
        """Replace all rows, or those matching `replace_where`, by a Spark DataFrame's, in one
        commit; None where there was nothing to commit.

        `txn`, `partition_by` and `options` are as in `append`; `overwriteSchema` and
        `partitionOverwriteMode` are further ones, and `dataChange` false needs a `transaction`.
        One with an id of the caller's own happens once, however often this is called. See
        `tidegate.spark.write.write.overwrite`. Needs the `spark` extra."""
        from tidegate.spark.write import write  # noqa: PLC0415 - the HTTP client works without Spark

        return write.overwrite(
            self,
            df,
            replace_where=replace_where,
            user_metadata=user_metadata,
            txn=txn,
            transaction=transaction,
            partition_by=partition_by,
            retries=retries,
            options=options,
        )

    def replace(
        self,
        df: "DataFrame",
        *,
        partition_by: Sequence[str] = (),
        cluster_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        comment: str | None = None,
        retries: int = 0,
    ) -> Receipt | None:
        """Replace rows, columns, partitioning, clustering, properties and comment by a Spark
        DataFrame's and what is given, in one commit (REPLACE TABLE AS SELECT). `retries` are as in
        `append`. See `tidegate.spark.write.as_select`. Needs the `spark` extra."""
        from tidegate.spark.write import as_select  # noqa: PLC0415 - as above

        return as_select.replace(
            self,
            df,
            partition_by=partition_by,
            cluster_by=cluster_by,
            properties=properties or {},
            comment=comment,
            retries=retries,
        )

    def sink(
        self,
        df: "DataFrame | None" = None,
        *,
        output_mode: str = "append",
        app_id: str | None = None,
        **options: str | int | bool,
    ) -> "Callable[[DataFrame, int], None]":
        """What `writeStream.foreachBatch` takes to write a streaming query's batches into the
        table, each in one commit and once, whatever is killed between any two steps. It is called
        once for a batch: a further part needs a sink with an `app_id` of its own.

        `df` is the stream: what does not fit is refused here, before the query starts. In the
        output mode `complete`, which has to be the query's, too, each batch replaces all rows.
        `app_id` takes the place of the query's id, under which batches are recorded. Options are
        `mergeSchema`, `userMetadata`, `maxRecordsPerFile` and `compression`, and in that mode
        `overwriteSchema`. See `tidegate.spark.stream.sink`. Needs the `spark` extra."""
        from tidegate.spark.stream.batch import OutputMode  # noqa: PLC0415 - as above
        from tidegate.spark.stream.sink import Sink  # noqa: PLC0415

        sink = Sink(self, mode=OutputMode.parse(output_mode), app_id=app_id, options=options)
        if df is not None:
            sink.check(df)
        return sink

    def read(
        self,
        spark: "SparkSession",
        where: str | None = None,
        *,
        version: int | None = None,
        timestamp: datetime | int | str | None = None,
    ) -> "DataFrame":
        """The rows matching a predicate (all, without one) as a Spark DataFrame, at a version or
        timestamp as `scan` has them; the timestamp may be a text as in SQL, too, in the session's
        time zone where it has none.

        In the `with` block of a transaction of this table, which is active in the thread then, it
        is the transaction's own read: at its read version, and recorded as read. A read of another
        version or of a timestamp is one of the past, and none of the transaction. Needs the `spark`
        extra."""
        from tidegate.spark.read import read  # noqa: PLC0415 - the HTTP client works without Spark

        return read.read(self, spark, where=where, version=version, timestamp=timestamp)

    def changes(
        self,
        spark: "SparkSession",
        *,
        from_version: int | None = None,
        to_version: int | None = None,
        from_timestamp: datetime | int | str | None = None,
        to_timestamp: datetime | int | str | None = None,
    ) -> "DataFrame":
        """The rows that a span of versions inserted, updated and deleted, as a Spark DataFrame with
        `_change_type`, `_commit_version` and `_commit_timestamp`; both ends are included, and
        without an end it goes to the latest version now. See `tidegate.spark.changes.frame`. Needs
        the `spark` extra."""
        from tidegate.spark.changes import frame  # noqa: PLC0415 - as in `append`

        return frame.changes(
            self,
            spark,
            from_version=from_version,
            to_version=to_version,
            from_timestamp=from_timestamp,
            to_timestamp=to_timestamp,
        )
