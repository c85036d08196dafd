"""DELETE: whole files by the log alone where it proves that every row goes; of others the rows are
marked, or the rest is written again.
"""

from dataclasses import replace
from time import monotonic

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tidegate.handle import TableHandle
from tidegate.models import DataFile
from tidegate.spark.commands.change_data import CHANGE_TYPE, DELETE, computed_once
from tidegate.spark.commands.marking import mark
from tidegate.spark.commands.outcome import (
    Changed,
    Rewrite,
    commit,
    rewriting,
)
from tidegate.spark.commands.predicate import RowCondition
from tidegate.spark.commands.target import Target, size_of, vectors_of
from tidegate.spark.expressions.pruning import statistics
from tidegate.spark.jobs.passes import Passes
from tidegate.spark.tables.places import FILE, POSITION
from tidegate.spark.tables.row_ids import ids_among
from tidegate.spark.write.idempotence import is_done
from tidegate.spark.write.repeats import redone

_OPERATION = "DELETE"
_GOES = "__tidegate_goes"


def delete(
    table: TableHandle,
    spark: SparkSession,
    condition: Column | None = None,
    *,
    alias: str | None = None,
    user_metadata: str | None = None,
    retries: int = 0,
) -> Changed:
    """Delete the rows of which the condition is true, all without one, in one commit.

    What is recorded as read is the condition, as far as the service can evaluate it, and the files
    in which it may be true. Raises `InvalidCommand` before any job, `UnsupportedTable`,
    `InvalidProposal` for an append-only table, `StorageError`, and what `Transaction.commit`
    raises; nothing of it is in the table then. After a `ConflictError` it is done anew, at most
    `retries` times: `InvalidRequest` for these where a subquery reads the table itself.
    """

    def once(is_repeated: bool) -> Changed:
        target = Target.begin(table, spark, alias=alias, is_repeated=is_repeated)
        if is_done(target.transaction, spark):
            return Changed(receipt=None)
        with target.passes(_OPERATION) as passes:
            if condition is None:
                return _whole(target, target.transaction.filter_files(), passes, {}, user_metadata)
            found = RowCondition.of(target, condition, operation=_OPERATION)
            target = found.target
            files = found.candidates()
            if found.is_of_partitions:
                return _whole(target, files, passes, found.parameters(), user_metadata)
            passes.scans(len(files))
            if target.marks_rows(_OPERATION):
                return _marking(target, found, files, passes, user_metadata)
            return _rows(target, found, files, passes, user_metadata)

    return redone(once, retries=retries, clock_s=monotonic)


def _whole(
    target: Target,
    files: list[DataFile],
    passes: Passes,
    parameters: dict[str, str],
    user_metadata: str | None,
) -> Changed:
    """Delete files without a look into them."""
    rows = _rows_of(files)
    metrics = _metrics(removed=files) | passes.metrics()
    if rows is None:
        for name in ("numDeletedRows", "numCopiedRows", "numAddedFiles"):
            del metrics[name]
    else:
        metrics["numDeletedRows"] = str(rows)
    receipt = commit(
        target.transaction,
        target.spark,
        _OPERATION,
        parameters=parameters or {"predicate": "[]"},
        metrics=metrics,
        removed=files,
        user_metadata=user_metadata,
    )
    return Changed(receipt=receipt, deleted=rows, metrics=metrics)


def _rows(
    target: Target,
    condition: RowCondition,
    files: list[DataFile],
    passes: Passes,
    user_metadata: str | None,
) -> Changed:
    """Delete rows: files that lose all go by the log, of the others the rest is written anew."""
    has_changes = target.layout.properties.change_data_feed
    # A commit with change data files has all of its changes in them.
    gone = [] if has_changes else condition.wholly(files)
    paths = {file.path for file in gone}
    matches = condition.matches([file for file in files if file.path not in paths])
    counts = matches.counts
    touched = [file for file in files if file.path in counts]
    records = dict(target.records([*gone, *touched]))
    deleted = sum(records[file.path] for file in gone) + sum(counts.values())
    copied = sum(records[file.path] for file in touched) - sum(counts.values())
    emptied = [file for file in touched if counts[file.path] >= records[file.path]]
    target.check_counts(emptied)
    rest = [file for file in touched if has_changes or counts[file.path] < records[file.path]]
    passes.writes(len(rest), of=len(files))
    with rewriting(target.transaction, target.layout, target.spark) as written:
        if rest:
            rows = target.rows(rest, with_ids=True)
            _write(condition.flagged(rows, rest, matches, name=_GOES), target, written, copied > 0)
            kept = written.data.rows + sum(counts[file.path] for file in rest)
            target.check_all_there(rest, rows=kept)
        metrics = _metrics(removed=[*gone, *touched], written=written) | passes.metrics()
        metrics |= {"numDeletedRows": str(deleted), "numCopiedRows": str(copied)}
        receipt = commit(
            target.transaction,
            target.spark,
            _OPERATION,
            parameters=condition.parameters(),
            metrics=metrics,
            removed=[*gone, *touched],
            written=written,
            user_metadata=user_metadata,
        )
    return Changed(receipt=receipt, deleted=deleted, metrics=metrics)


def _marking(
    target: Target,
    condition: RowCondition,
    files: list[DataFile],
    passes: Passes,
    user_metadata: str | None,
) -> Changed:
    """Delete rows by marking them. Their positions are the change data, too."""
    gone = condition.wholly(files)
    paths = {file.path for file in gone}
    looked_at = [file for file in files if file.path not in paths]
    positions = condition.positions(looked_at)
    passes.writes(len(positions), of=len(files))
    with rewriting(target.transaction, target.layout, target.spark) as written:
        marks = mark(target, written, looked_at, positions)
        deleted = sum(target.records(gone).values()) + sum(map(len, positions.values()))
        wholly = [*gone, *marks.gone]
        metrics = _metrics(removed=wholly, written=written) | passes.metrics()
        counts = replace(marks, gone=tuple(wholly)).metrics()
        metrics |= {f"num{name}": str(count) for name, count in counts.items()}
        metrics["numDeletedRows"] = str(deleted)
        receipt = commit(
            target.transaction,
            target.spark,
            _OPERATION,
            parameters=condition.parameters(),
            metrics=metrics,
            removed=[*wholly, *marks.before],
            marked=marks.after,
            written=written,
            user_metadata=user_metadata,
        )
    return Changed(receipt=receipt, deleted=deleted, metrics=metrics)


def _write(rows: DataFrame, target: Target, written: Rewrite, keeps: bool) -> None:
    """Write those of the flagged rows that stay, and the others as change data."""
    rows = rows.drop(FILE, POSITION)
    has_changes = target.layout.properties.change_data_feed
    if has_changes:
        rows = computed_once(rows)
    if keeps or has_changes:
        written.write(rows.where(~F.col(_GOES)).drop(_GOES))
    if has_changes:
        going = rows.where(F.col(_GOES)).drop(_GOES, *ids_among(rows, target.layout))
        written.write_changes(going.select("*", F.lit(DELETE).alias(CHANGE_TYPE)))


def _rows_of(files: list[DataFile]) -> int | None:
    """How many rows the files hold by the log; None where it does not tell of each."""
    rows = 0
    for file in files:
        stats = statistics(file)
        if stats is None or stats.num_records is None:
            return None
        vector = file.deletion_vector
        rows += stats.num_records - (0 if vector is None else vector.cardinality)
    return rows


def _metrics(*, removed: list[DataFile], written: Rewrite | None = None) -> dict[str, str]:
    added = () if written is None else written.data.adds
    changes = () if written is None else written.changes
    return {
        "numRemovedFiles": str(len(removed)),
        "numRemovedBytes": str(size_of(removed)),
        "numAddedFiles": str(len(added)),
        "numAddedBytes": str(size_of(list(added))),
        "numAddedChangeFiles": str(len(changes)),
        "numDeletedRows": "0",
        "numCopiedRows": "0",
        "numDeletionVectorsAdded": "0",
        "numDeletionVectorsRemoved": str(vectors_of(removed)),
        "numDeletionVectorsUpdated": "0",
    }
