"""DELETE: whole files by the log alone where it proves that every row goes, others written
again."""

from time import monotonic

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from tidegate.handle import TableHandle
from tidegate.models import DataFile
from tidegate.spark.commands.change_data import CHANGE_TYPE, DELETE
from tidegate.spark.commands.outcome import (
    Changed,
    Rewrite,
    Stopwatch,
    commit,
    rewriting,
)
from tidegate.spark.commands.predicate import RowCondition, without_matches
from tidegate.spark.commands.pruning import statistics
from tidegate.spark.commands.target import Target, size_of, vectors_of
from tidegate.spark.read.rows import FILE, POSITION
from tidegate.spark.tables.assignment import quoted
from tidegate.spark.write.repeats import repeated

_OPERATION = "DELETE"


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
    `retries` times.
    """

    def once() -> Changed:
        target = Target.begin(table, spark, alias=alias)
        watch = Stopwatch()
        if condition is None:
            return _whole(target, target.transaction.filter_files(), watch, {}, user_metadata)
        found = RowCondition.of(target, condition, operation=_OPERATION)
        files = found.candidates()
        if found.is_of_partitions:
            return _whole(target, files, watch, found.parameters(), user_metadata)
        return _rows(target, found, files, watch, user_metadata)

    return repeated(once, retries=retries, clock_s=monotonic)


def _whole(
    target: Target,
    files: list[DataFile],
    watch: Stopwatch,
    parameters: dict[str, str],
    user_metadata: str | None,
) -> Changed:
    """Delete files without a look into them."""
    rows = _rows_of(files)
    metrics = _metrics(removed=files) | watch.metrics()
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
    watch: Stopwatch,
    user_metadata: str | None,
) -> Changed:
    """Delete rows: files that lose all go by the log, of the others the rest is written anew."""
    has_changes = target.layout.properties.change_data_feed
    # A commit with change data files has all of its changes in them.
    gone = [] if has_changes else condition.wholly(files)
    paths = {file.path for file in gone}
    matches = condition.matches([file for file in files if file.path not in paths])
    touched = [file for file in files if file.path in matches]
    records = dict(target.records([*gone, *touched]))
    deleted = sum(records[file.path] for file in gone) + sum(matches.values())
    copied = sum(records[file.path] for file in touched) - sum(matches.values())
    rest = [file for file in touched if has_changes or matches[file.path] < records[file.path]]
    if rest:
        target.check_rewritable()
    watch.scanned()
    with rewriting(target.transaction, target.layout, target.spark) as written:
        if rest:
            _write(target, condition, rest, written, keeps=copied > 0)
        metrics = _metrics(removed=[*gone, *touched], written=written) | watch.metrics()
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


def _write(
    target: Target, condition: RowCondition, files: list[DataFile], written: Rewrite, *, keeps: bool
) -> None:
    if keeps:
        rest = without_matches(target.rows(files), condition.given)
        written.write(rest.drop(FILE, POSITION))
    columns = [quoted(name) for name in target.layout.spark_schema.names]
    going = target.rows(files).where(condition.given)
    written.write_changes(going.select(*columns, F.lit(DELETE).alias(CHANGE_TYPE)))


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
