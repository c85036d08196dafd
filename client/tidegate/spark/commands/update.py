"""UPDATE: the files that hold a row to change are written again."""

from collections.abc import Mapping
from time import monotonic

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tidegate.handle import TableHandle
from tidegate.models import DataFile
from tidegate.spark.commands.assignments import (
    Assigned,
    Path,
    UnknownColumn,
    check_distinct,
    current_value,
    name_parts,
    new_value,
    path_of,
    tree_of,
    with_defaults,
    without_qualifier,
)
from tidegate.spark.commands.casts import Casts
from tidegate.spark.commands.change_data import images
from tidegate.spark.commands.errors import InvalidCommand, of_spark
from tidegate.spark.commands.expressions import Scope
from tidegate.spark.commands.outcome import Changed, Stopwatch, commit, rewriting
from tidegate.spark.commands.predicate import RowCondition, is_true
from tidegate.spark.commands.target import Target, size_of, vectors_of
from tidegate.spark.read.rows import FILE, POSITION
from tidegate.spark.write.constraints import generated_columns
from tidegate.spark.write.repeats import repeated

_OPERATION = "UPDATE"
_CHANGES = "__tidegate_changes"


def update(
    table: TableHandle,
    spark: SparkSession,
    values: Mapping[str, Column],
    condition: Column | None = None,
    *,
    alias: str | None = None,
    user_metadata: str | None = None,
    retries: int = 0,
) -> Changed:
    """Set columns, and fields of structs, of the rows of which the condition is true, of all
    without one, in one commit. Every value is computed from the row as it was.

    Values are stored by `spark.sql.storeAssignmentPolicy`; generated columns that are not set are
    computed anew. Reads and errors are those of `delete`, and rows are checked as `append` checks
    them.
    """

    def once() -> Changed:
        target = Target.begin(table, spark, alias=alias)
        return _Update(target, values, condition, user_metadata).run()

    return repeated(once, retries=retries, clock_s=monotonic)


class _Update:
    def __init__(
        self,
        target: Target,
        values: Mapping[str, Column],
        condition: Column | None,
        user_metadata: str | None,
    ) -> None:
        self._target = target
        self._values = values
        self._paths = self._resolved_paths()
        self._user_metadata = user_metadata
        self._condition = (
            None if condition is None else RowCondition.of(target, condition, operation=_OPERATION)
        )
        # Once over no rows, so that what is wrong is told before any job.
        self._changed_columns(self._flagged(target.nothing()))

    def run(self) -> Changed:
        target, condition = self._target, self._condition
        watch = Stopwatch()
        files = target.transaction.filter_files() if condition is None else condition.candidates()
        if condition is None or condition.is_of_partitions:
            touched, updated = files, None
        else:
            matches = condition.matches(files)
            touched = [file for file in files if file.path in matches]
            updated = sum(matches.values())
        records = sum(target.records(touched).values())
        updated = records if updated is None else updated
        if touched:
            target.check_rewritable()
        watch.scanned()
        with rewriting(target.transaction, target.layout, target.spark) as written:
            if touched:
                written.write(self._rewritten(touched))
                if target.layout.properties.change_data_feed:
                    written.write_changes(self._images(touched))
            metrics = {
                "numRemovedFiles": str(len(touched)),
                "numRemovedBytes": str(size_of(touched)),
                "numAddedFiles": str(len(written.data.adds)),
                "numAddedBytes": str(written.data.size),
                "numAddedChangeFiles": str(len(written.changes)),
                "numUpdatedRows": str(updated),
                "numCopiedRows": str(records - updated),
                "numDeletionVectorsAdded": "0",
                "numDeletionVectorsRemoved": str(vectors_of(touched)),
                "numDeletionVectorsUpdated": "0",
            } | watch.metrics()
            receipt = commit(
                target.transaction,
                target.spark,
                _OPERATION,
                parameters={"predicate": "[]"} if condition is None else condition.parameters(),
                metrics=metrics,
                removed=touched,
                written=written,
                user_metadata=self._user_metadata,
            )
        return Changed(receipt=receipt, updated=updated, metrics=metrics)

    def _resolved_paths(self) -> list[Path]:
        target = self._target
        schema = target.layout.spark_schema
        found = []
        for name in self._values:
            parts = without_qualifier(name_parts(target.spark, name), schema, target.alias)
            try:
                found.append(path_of(parts, schema))
            except UnknownColumn:
                names = ", ".join(f"`{each}`" for each in schema.names)
                raise InvalidCommand(
                    "UNRESOLVED_COLUMN.WITH_SUGGESTION",
                    f"A column with name {name} cannot be resolved. Did you mean one of the "
                    f"following? [{names}]",
                ) from None
        check_distinct(found)
        target.check_numbers_stay(path[0] for path in found)
        return found

    def _flagged(self, rows: DataFrame) -> DataFrame:
        """The rows, and whether each is to change."""
        condition = F.lit(True) if self._condition is None else is_true(self._condition.given)
        return rows.select("*", condition.alias(_CHANGES))

    def _changed_columns(self, rows: DataFrame) -> dict[str, Column]:
        """The columns of a row that is to change, as they become; without the generated columns
        that have to be computed anew."""
        target = self._target
        casts = Casts.of(target.spark)
        try:
            given = with_defaults(
                target.spark, target.layout, self._paths, list(self._values.values())
            )
            values = Scope(rows).resolve(given)
            assigned = tree_of(self._paths, values)
            columns = {
                field.name: new_value(
                    casts,
                    assigned.get(field.name, Assigned()),
                    current_value(target.alias, field.name),
                    field.dataType,
                    name=field.name,
                )
                if field.name in assigned
                else current_value(target.alias, field.name)
                for field in target.layout.spark_schema.fields
                if field.name in assigned or field.name not in generated_columns(target.layout)
            }
            rows.select(*(value.alias(name) for name, value in columns.items()))
        except (AnalysisException, ParseException) as error:
            raise error if isinstance(error, InvalidCommand) else of_spark(error) from error
        return columns

    def _rewritten(self, files: list[DataFile]) -> DataFrame:
        rows = self._flagged(self._target.rows(files))
        changed = self._changed_columns(rows)
        flag = F.col(_CHANGES)
        return rows.select(
            *(
                F.when(flag, value).otherwise(current_value(self._target.alias, name)).alias(name)
                for name, value in changed.items()
            )
        )

    def _images(self, files: list[DataFile]) -> DataFrame:
        rows = self._flagged(self._target.rows(files)).where(F.col(_CHANGES)).drop(FILE, POSITION)
        after = self._changed_columns(rows)
        before = {name: current_value(self._target.alias, name) for name in after}
        return images(rows, before, after)
