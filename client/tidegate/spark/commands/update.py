"""UPDATE: rows that change are marked in their files and written to new ones, or files with such
rows are written again.
"""

from collections.abc import Mapping
from time import monotonic

from pyroaring import BitMap64
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tidegate.handle import TableHandle
from tidegate.models import DataFile
from tidegate.spark.columns.constraints import generated_columns, with_computed
from tidegate.spark.commands.change_data import CHANGE_TYPE, POSTIMAGE, computed_once, images
from tidegate.spark.commands.marking import Marks, Positions, mark
from tidegate.spark.commands.outcome import Changed, Rewrite, commit, rewriting
from tidegate.spark.commands.predicate import Matches, RowCondition
from tidegate.spark.commands.target import Target, size_of
from tidegate.spark.expressions.assignments import (
    Path,
    UnknownColumn,
    check_distinct,
    name_parts,
    new_value,
    path_of,
    tree_of,
    with_defaults,
    without_qualifier,
)
from tidegate.spark.expressions.casts import Casts
from tidegate.spark.expressions.errors import InvalidCommand, of_spark
from tidegate.spark.expressions.resolution import Scope
from tidegate.spark.jobs.passes import Passes
from tidegate.spark.read.positions import only_rows
from tidegate.spark.tables.assignment import chosen, quoted
from tidegate.spark.tables.building import few_calls
from tidegate.spark.tables.places import FILE, POSITION
from tidegate.spark.tables.row_ids import kept_ids
from tidegate.spark.write.idempotence import is_done
from tidegate.spark.write.repeats import redone

_OPERATION = "UPDATE"
_CHANGES = "__tidegate_changes"
_AFTER = "__tidegate_after"


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

    def once(is_repeated: bool) -> Changed:
        target = Target.begin(table, spark, alias=alias, is_repeated=is_repeated)
        if is_done(target.transaction, spark):
            return Changed(receipt=None)
        return _Update(target, values, condition, user_metadata).run()

    return redone(once, retries=retries, clock_s=monotonic)


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
        self._resolved_paths()
        self._user_metadata = user_metadata
        self._condition = (
            None if condition is None else RowCondition.of(target, condition, operation=_OPERATION)
        )
        if self._condition is not None:
            self._target = self._condition.target
        self._paths = self._resolved_paths()
        # Over no rows, so that what is wrong is told before any job.
        self._after = self._assigned_columns()

    def run(self) -> Changed:
        with self._target.passes(_OPERATION) as passes:
            return self._run(passes)

    def _run(self, passes: Passes) -> Changed:
        target, condition = self._target, self._condition
        files = target.transaction.filter_files() if condition is None else condition.candidates()
        positions: Positions = {}
        matches = None
        passes.scans(len(files))
        if condition is None or condition.is_of_partitions:
            touched, updated = files, None
        elif target.marks_rows(_OPERATION):
            positions = condition.positions(files)
            touched = [files[number] for number in sorted(positions)]
            updated = sum(map(len, positions.values()))
        else:
            matches = condition.matches(files)
            touched = [file for file in files if file.path in matches.counts]
            updated = sum(matches.counts.values())
        records = sum(target.records(touched).values())
        updated = records if updated is None else updated
        copied = 0 if positions else records - updated
        passes.writes(len(touched), of=len(files))
        with rewriting(target.transaction, target.layout, target.spark) as written:
            marks = mark(target, written, files, positions)
            if touched:
                marked = [positions[number] for number in sorted(positions)]
                self._write(written, self._flagged_rows(touched, marked, matches))
                if not positions:
                    target.check_all_there(touched, rows=written.data.rows)
            removed = marks.removed if positions else touched
            vectors = (marks if positions else Marks(gone=tuple(touched))).metrics()
            metrics = {
                "numRemovedFiles": str(len(touched)),
                "numRemovedBytes": str(size_of(list(marks.gone) if positions else touched)),
                "numAddedFiles": str(len(written.data.adds)),
                "numAddedBytes": str(written.data.size),
                "numAddedChangeFiles": str(len(written.changes)),
                "numUpdatedRows": str(updated),
                "numCopiedRows": str(copied),
            } | passes.metrics()
            metrics |= {f"num{name}": str(count) for name, count in vectors.items()}
            receipt = commit(
                target.transaction,
                target.spark,
                _OPERATION,
                parameters={"predicate": "[]"} if condition is None else condition.parameters(),
                metrics=metrics,
                removed=removed,
                marked=marks.after,
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

    @few_calls()
    def _assigned_columns(self) -> dict[str, Column]:
        """The columns of a row that is to change that are assigned to, as they become."""
        target = self._target
        casts = Casts.of(target.spark)
        try:
            given = with_defaults(
                target.spark, target.layout, self._paths, list(self._values.values())
            )
            scope = Scope(target.nothing, target.instant)
            assigned = tree_of(self._paths, scope.resolve(given))
            known = scope.named(assigned)
            columns = {
                name: new_value(
                    casts,
                    value,
                    known[name].column,
                    target.layout.spark_schema[name].dataType,
                    name=name,
                )
                for name, value in assigned.items()
            }
            target.nothing.select(*columns.values())
        except (AnalysisException, ParseException) as error:
            raise error if isinstance(error, InvalidCommand) else of_spark(error) from error
        return columns

    def _flagged_rows(
        self, files: list[DataFile], marked: list[BitMap64], matches: Matches | None
    ) -> DataFrame:
        """The rows of the files with their flags. Where rows are marked, exactly these: a condition
        that is asked again may be true of others, which would be there twice or not at all."""
        rows = self._target.rows(files, with_ids=True)
        if self._condition is not None and matches is not None:
            return self._condition.flagged(rows, files, matches, name=_CHANGES)
        if marked:
            rows = only_rows(rows, F.col(FILE), F.col(POSITION), dict(enumerate(marked)))
        return rows.select("*", F.lit(True).alias(_CHANGES))

    def _write(self, written: Rewrite, rows: DataFrame) -> None:
        target = self._target
        rows = rows.drop(FILE, POSITION)
        after, changes = self._after, F.col(_CHANGES)
        has_changes = target.layout.properties.change_data_feed
        if has_changes:
            made = F.struct(*(value.alias(name) for name, value in after.items()))
            rows = computed_once(rows.select("*", F.when(changes, made).alias(_AFTER)))
            after = {name: F.col(_AFTER).getField(name) for name in after}
        names = target.layout.spark_schema.names
        columns: dict[str, Column | None] = dict.fromkeys([*names, _CHANGES])
        for name, value in after.items():
            columns[name] = F.when(changes, value).otherwise(quoted(name))
        whole = chosen(rows, columns | kept_ids(rows, target.layout, changes))
        written.write(self._computed(whole, changes).drop(_CHANGES))
        if has_changes:
            both = images(rows.where(changes), names, after)
            written.write_changes(self._computed(both, F.col(CHANGE_TYPE) == POSTIMAGE))

    def _computed(self, rows: DataFrame, changed: Column) -> DataFrame:
        """The rows with the generated columns that are not set computed anew where they changed."""
        layout = self._target.layout
        names = generated_columns(layout).keys() - {path[0] for path in self._paths}
        return with_computed(rows, layout, dict.fromkeys(sorted(names), changed))
