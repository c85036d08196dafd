"""A transaction, as users hold it: with Spark's reads and writes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidegate.definition import check_expressions
from tidegate.models import DataFile
from tidegate.transaction_handle import TransactionHandle
from tidegate_protocol.log.actions import Action, Metadata

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Transaction(TransactionHandle):
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

    def read(self, spark: "SparkSession", where: str | None = None) -> "DataFrame":
        """The rows matching a predicate (all, without one) as a Spark DataFrame, at the read
        version, recorded as `filter_files` records them. See `tidegate.spark.read.read`. Needs the
        `spark` extra."""
        from tidegate.spark.read import read  # noqa: PLC0415 - the HTTP client works without Spark

        self._check_open()
        return read.read_in(self, spark, where=where)

    def rows_of(
        self,
        spark: "SparkSession",
        files: Sequence[DataFile],
        *,
        located: bool = False,
        with_ids: bool = False,
    ) -> "DataFrame":
        """The rows of files that `filter_files` gave, which recorded them as read, as a Spark
        DataFrame. With `located`, they say where they are (`tidegate.spark.tables.places`). With
        `with_ids`, rows of a table that tracks them have their ids and commit versions, too, in
        columns called as its properties say. Needs the `spark` extra."""
        from tidegate.spark.read import read  # noqa: PLC0415 - the HTTP client works without Spark

        self._check_open()
        return read.read_files_in(self, spark, files, located=located, with_ids=with_ids)

    def write_files(self, df: "DataFrame", **options: str | int | bool) -> list[DataFile]:
        """Write a Spark DataFrame's rows into new data files of the table, as `Table.append` does,
        and return the files for `add`. Options are `dataChange`, `maxRecordsPerFile` and
        `compression`. See `tidegate.spark.write.files`. Needs the `spark` extra.

        The files are nobody's until a commit names them. Where none ever does, they stay until
        VACUUM finds them, because another transaction may still add them, if neither the table's
        metadata nor what their rows were read from has changed.
        """
        from tidegate.spark.write import files  # noqa: PLC0415 - the HTTP client works without Spark

        self._check_open()
        found = files.write_files(self, df, options=options)
        # The files are of the schema as it is now.
        self._has_written = True
        return list(found.adds)

    def _append(self, action: Action) -> None:
        if isinstance(action, Metadata):
            check_expressions(
                action.schema_string,
                action.configuration,
                known=self._metadata,
                statement="ALTER TABLE",
            )
        super()._append(action)
