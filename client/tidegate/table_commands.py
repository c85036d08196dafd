"""Delta's commands, as methods of a table."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Self

from tidegate.handle import TableHandle

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from tidegate.spark.alter.alter import Alter
    from tidegate.spark.clone.clone import Cloned
    from tidegate.spark.commands.outcome import Changed
    from tidegate.spark.commands.restore import Restored
    from tidegate.spark.merge.builder import MergeBuilder
    from tidegate.spark.optimize.compute_statistics import ComputedStatistics
    from tidegate.spark.optimize.metrics import Optimized


class TableCommands(TableHandle):
    """The commands that change a table's rows, files or definition, or make another of it."""

    def delete(
        self,
        where: "Column | str | None" = None,
        *,
        spark: "SparkSession | None" = None,
        user_metadata: str | None = None,
        retries: int = 0,
    ) -> "Changed":
        """Delete the rows of which `where` is true, all without it, in one commit.

        `spark` is the thread's session where none is given. With `retries`, a command that lost to
        a concurrent commit is done anew on the newer version, so many times at most. See
        `tidegate.spark.commands.delete.delete`. Needs the `spark` extra."""
        from tidegate.spark import table_commands  # noqa: PLC0415 - the HTTP client works without Spark

        return table_commands.delete(
            self, where, spark=spark, user_metadata=user_metadata, retries=retries
        )

    def update(
        self,
        values: "Mapping[str, Column | str]",
        where: "Column | str | None" = None,
        *,
        spark: "SparkSession | None" = None,
        user_metadata: str | None = None,
        retries: int = 0,
    ) -> "Changed":
        """Set columns, and fields of structs, of the rows of which `where` is true, of all without
        it, in one commit: `update({"delay": "delay + 1"}, "month = 5")`. As `delete` otherwise. See
        `tidegate.spark.commands.update.update`. Needs the `spark` extra."""
        from tidegate.spark import table_commands  # noqa: PLC0415 - as above

        return table_commands.update(
            self, values, where, spark=spark, user_metadata=user_metadata, retries=retries
        )

    def merge(
        self, source: "DataFrame", on: "Column | str", *, alias: str | None = None
    ) -> "MergeBuilder":
        """Begin a MERGE of a Spark DataFrame's rows: clauses are added to what is returned, and its
        `execute` does it in one commit. The table is called `alias` in expressions, or else by the
        last part of its name. See `tidegate.spark.merge.builder`. Needs the `spark` extra."""
        from tidegate.spark import table_commands  # noqa: PLC0415 - as above

        return table_commands.merge(self, source, on, alias=alias)

    def restore(
        self,
        *,
        version: int | None = None,
        timestamp: datetime | int | str | None = None,
        spark: "SparkSession | None" = None,
        user_metadata: str | None = None,
        retries: int = 0,
    ) -> "Restored":
        """Make the table what it was at a version, or at the latest one not after a timestamp, in
        one commit. A timestamp as text is one of SQL's, in the session's time zone. As `delete`
        otherwise. See `tidegate.spark.commands.restore.restore`. Needs the `spark` extra."""
        from tidegate.spark import table_commands  # noqa: PLC0415 - as above

        return table_commands.restore(
            self,
            version=version,
            timestamp=timestamp,
            spark=spark,
            user_metadata=user_metadata,
            retries=retries,
        )

    def clone(
        self,
        name: str,
        *,
        shallow: bool = False,
        version: int | None = None,
        timestamp: datetime | int | str | None = None,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
        location: str | None = None,
        spark: "SparkSession | None" = None,
        user_metadata: str | None = None,
        retries: int = 0,
    ) -> "Cloned[Self]":
        """Make a table `catalog.schema.table` of this one, now or as it was, in one commit; with
        `replace` it may take the place of a table. A shallow one has the files of this one, a deep
        one copies of them. `properties` are in the place of this table's.
        As `restore` otherwise. See `tidegate.spark.clone.clone`. Needs the `spark` extra."""
        from tidegate.spark import table_commands  # noqa: PLC0415 - as above

        return table_commands.clone(
            self,
            name,
            shallow=shallow,
            version=version,
            timestamp=timestamp,
            replace=replace,
            properties=properties or {},
            location=location,
            spark=spark,
            user_metadata=user_metadata,
            retries=retries,
        )

    def alter(
        self,
        *,
        spark: "SparkSession | None" = None,
        user_metadata: str | None = None,
        retries: int = 0,
    ) -> "Alter":
        """Change what the table is: `table.alter().add_columns("delay INT")`. What is returned has
        a method for each ALTER TABLE, which is one commit. `spark` is the thread's session where
        none is given. See `tidegate.spark.alter.alter`. Needs the `spark` extra."""
        from tidegate.spark import table_commands  # noqa: PLC0415 - as above

        return table_commands.alter(self, spark=spark, user_metadata=user_metadata, retries=retries)

    def compute_statistics(
        self,
        where: str | None = None,
        *,
        spark: "SparkSession | None" = None,
        user_metadata: str | None = None,
        retries: int = 0,
    ) -> "ComputedStatistics":
        """Put the files' statistics anew from the ends of the files, in one commit that changes no
        row: after files came without them, or the properties ask for other columns. `where` is over
        partition columns. As `delete` otherwise. See `tidegate.spark.optimize.compute_statistics`.
        Needs the `spark` extra."""
        from tidegate.spark import table_commands  # noqa: PLC0415 - as above

        return table_commands.compute_statistics(
            self, where, spark=spark, user_metadata=user_metadata, retries=retries
        )

    def optimize(
        self,
        where: str | None = None,
        *,
        z_order_by: str | Sequence[str] | None = None,
        full: bool = False,
        spark: "SparkSession | None" = None,
        user_metadata: str | None = None,
        retries: int = 20,
    ) -> "Optimized":
        """Write small files again as few large ones, or with `z_order_by` all files, so that rows
        which are near in these columns share files; `where` is over partition columns. A clustered
        table is clustered instead: what is new, or with `full` all that is not by its columns.

        The rows stay the same. Whatever others commit meanwhile stands, and what it concerns is
        done again, after `retries` such commits at most. See `tidegate.spark.optimize.optimize`.
        Needs the `spark` extra."""
        from tidegate.spark import table_commands  # noqa: PLC0415 - as above

        return table_commands.optimize(
            self,
            where,
            z_order_by,
            is_full=full,
            spark=spark,
            user_metadata=user_metadata,
            retries=retries,
        )

    def reorg(
        self,
        where: str | None = None,
        *,
        spark: "SparkSession | None" = None,
        user_metadata: str | None = None,
        retries: int = 20,
    ) -> "Optimized":
        """Write the files that hold deleted rows or dropped columns again without them (REORG TABLE
        ... APPLY (PURGE)), as `optimize` does otherwise."""
        from tidegate.spark import table_commands  # noqa: PLC0415 - as above

        return table_commands.reorg(
            self, where, spark=spark, user_metadata=user_metadata, retries=retries
        )
