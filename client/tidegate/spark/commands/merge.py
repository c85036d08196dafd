"""MERGE: the rows that match are found first, then the files that hold one are written again with
what is inserted. A MERGE that only inserts needs one pass.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from uuid import uuid4

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from tidegate.handle import TableHandle
from tidegate.models import DataFile
from tidegate.spark.commands.clauses import Action, Merge, When
from tidegate.spark.commands.expressions import Scope, conjuncts
from tidegate.spark.commands.merge_plan import MergePlan, Planner
from tidegate.spark.commands.merge_rows import (
    ACTION,
    OF_SOURCE,
    OF_TARGET,
    Outcome,
    flagged,
    inserts,
    with_action,
)
from tidegate.spark.commands.merge_source import MergeSource, SourceFacts
from tidegate.spark.commands.numbers import note_numbers, with_numbers
from tidegate.spark.commands.outcome import (
    Changed,
    Rewrite,
    Stopwatch,
    commit,
    rewriting,
)
from tidegate.spark.commands.pruning import joined, predicate_text
from tidegate.spark.commands.target import Target, size_of, vectors_of
from tidegate.spark.errors import InvalidRows, UnsupportedTable
from tidegate.spark.read.rows import FILE, POSITION
from tidegate.spark.storage.hadoop import JavaObject
from tidegate.spark.tables.plans import reads_table
from tidegate.spark.write.column_mapping import with_marks
from tidegate.spark.write.files import writable_layout
from tidegate.spark.write.repeats import repeated
from tidegate.spark.write.session import MERGE_SCHEMA

_MATCHES = "__tidegate_matches"


def merge(
    table: TableHandle, what: Merge, *, user_metadata: str | None = None, retries: int = 0
) -> Changed:
    """Do the MERGE in one commit.

    What is recorded as read are the parts of the condition that speak of the table alone, with the
    bounds that the source's values give; where rows change that the source lacks, or the source
    reads the table, all of it. Raises `InvalidCommand` before any job, `InvalidRows` where several
    rows of the source match one that would change, and what `delete` and `Table.append` raise.
    """

    def once() -> Changed:
        spark = what.source.sparkSession
        removes = not what.inserts_only
        target = Target.begin(table, spark, alias=what.alias, removes=removes)
        evolves = what.evolves or str(spark.conf.get(MERGE_SCHEMA, "false")).lower() == "true"
        planner = Planner(what, target, evolves=evolves)
        return _Execution(what, target, planner).run(user_metadata)

    return repeated(once, retries=retries, clock_s=monotonic)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counts:
    """Of the table's rows: by clause how many changed, and how many the touched files hold."""

    by_clause: Sequence[int]
    in_files: int

    def of(self, what: Merge, action: Action) -> dict[When, int]:
        """How many rows clauses with this action changed, by the rows that they are for."""
        found = dict.fromkeys(When, 0)
        for clause, count in zip(what.clauses, self.by_clause, strict=True):
            if clause.action is action:
                found[clause.when] += count
        return found


class _Execution:
    def __init__(self, what: Merge, target: Target, planner: Planner) -> None:
        self._what = what
        self._target = target
        self._planner = planner
        self._watch = Stopwatch()
        self._first_plan = planner.plan(target.nothing(), what.source)
        if planner.schema != target.layout.spark_schema:
            schema, properties = with_marks(
                planner.schema, target.layout, new_name=lambda: f"col-{uuid4()}"
            )
            target.transaction.update_metadata(schema=schema, set_properties=properties)
        if reads_table(what.source, target.layout):
            target.transaction.read_whole_table()
        self._layout = writable_layout(target.transaction)
        if self._first_plan.numbered and self._layout.properties.change_data_feed:
            raise UnsupportedTable(
                f"table {self._layout.name} has identity columns and a change data feed, and rows "
                "that a MERGE of this client inserts would have other numbers there",
                hint="append the rows that are new, and merge the others",
            )

    def run(self, user_metadata: str | None) -> Changed:
        what, target = self._what, self._target
        target.check_rewritable()
        source = MergeSource.of(what.source)
        rows = flagged(source.frame, OF_SOURCE)
        plan = self._planner.plan(target.nothing(), rows)
        looks_everywhere = bool(what.of(When.NOT_MATCHED_BY_SOURCE))
        facts = SourceFacts.of(plan, target, prunes=not looks_everywhere)
        own = [] if looks_everywhere else _own_conditions(plan)
        where = None
        if not looks_everywhere:
            of_table = predicate_text(target.spark, target.layout, target.alias, own)
            where = joined([*([of_table] if of_table else []), *facts.predicates])
        files = target.transaction.filter_files(where)
        with rewriting(target.transaction, self._layout, target.spark) as written:
            if what.inserts_only:
                touched: list[DataFile] = []
                counts = _Counts(by_clause=[0] * len(what.clauses), in_files=0)
                self._watch.scanned()
                self._insert(written, rows, files, where)
            else:
                touched, counts = self._touched(rows, files, where)
                self._watch.scanned()
                self._rewrite(written, rows, touched)
            of_source = {
                "numSourceRows": facts.rows,
                "materializeSourceTimeMs": source.materialized_ms,
            }
            return self._commit(
                written, touched, counts, own=of_source, user_metadata=user_metadata
            )

    def _insert(
        self, written: Rewrite, source: DataFrame, files: list[DataFile], where: str | None
    ) -> None:
        table = _pruned(self._target.rows(files), where)
        plan = self._planner.plan(table, source)
        unmatched = source.join(table, plan.condition.column, "left_anti")
        acted = inserts(unmatched, plan)
        outcome = Outcome(plan=plan, layout=self._layout)
        self._write(written, outcome.rows(acted))

    def _touched(
        self, source: DataFrame, files: list[DataFile], where: str | None
    ) -> tuple[list[DataFile], _Counts]:
        """The files to write again, by a job that counts what becomes of each one's rows."""
        what, target = self._what, self._target
        table = _pruned(target.rows(files), where)
        plan = self._planner.plan(table, source)
        how = "left_outer" if what.of(When.NOT_MATCHED_BY_SOURCE) else "inner"
        acted = with_action(table.join(source, plan.condition.column, how), plan)
        by_row = acted.groupBy(FILE, POSITION).agg(
            F.count(F.col(OF_SOURCE)).alias(_MATCHES),
            F.max(ACTION).alias(ACTION),
        )
        clauses = [F.count(F.when(F.col(ACTION) == i, 1)) for i in range(len(what.clauses))]
        found = by_row.groupBy(FILE).agg(F.max(_MATCHES).alias(_MATCHES), *clauses).collect()
        if any(row[_MATCHES] > 1 for row in found) and not what.may_match_often:
            raise _several_matches(target)
        changing = [row for row in found if not what.matched_only or any(row[2:])]
        touched = [files[row[FILE]] for row in changing]
        counts = _Counts(
            by_clause=[_total(changing, 2 + i) for i in range(len(what.clauses))],
            in_files=sum(target.records(touched).values()),
        )
        return touched, counts

    def _rewrite(self, written: Rewrite, source: DataFrame, touched: list[DataFile]) -> None:
        has_inserts = bool(self._what.of(When.NOT_MATCHED))
        if not touched and not has_inserts:
            return
        table = flagged(self._target.rows(touched), OF_TARGET)
        plan = self._planner.plan(table, source)
        how = "full_outer" if has_inserts else "left_outer"
        acted = with_action(table.join(source, plan.condition.column, how), plan)
        outcome = Outcome(plan=plan, layout=self._layout)
        self._write(written, outcome.rows(acted))
        if self._layout.properties.change_data_feed:
            if self._what.may_match_often:
                acted = _each_once(acted, plan)
            written.write_changes(outcome.changes(acted))

    def _write(self, written: Rewrite, rows: DataFrame) -> None:
        """Write the rows by partition, so that no task writes into all of them."""
        columns = [c for c in self._layout.partition_columns if c in rows.columns]
        if columns:
            rows = rows.repartition(*(F.col(f"`{c}`") for c in columns))
        numbered = self._first_plan.numbered
        written.write(with_numbers(rows, self._layout, numbered))
        note_numbers(self._target.transaction, self._layout, written.data, numbered)

    def _commit(
        self,
        written: Rewrite,
        touched: list[DataFile],
        counts: _Counts,
        *,
        own: Mapping[str, int],
        user_metadata: str | None,
    ) -> Changed:
        updates = counts.of(self._what, Action.UPDATE)
        deletes = counts.of(self._what, Action.DELETE)
        updated, deleted = sum(updates.values()), sum(deletes.values())
        copied = counts.in_files - updated - deleted
        inserted = written.data.rows - copied - updated
        metrics = dict(own) | {
            "numTargetRowsInserted": inserted,
            "numTargetRowsUpdated": updated,
            "numTargetRowsMatchedUpdated": updates[When.MATCHED],
            "numTargetRowsNotMatchedBySourceUpdated": updates[When.NOT_MATCHED_BY_SOURCE],
            "numTargetRowsDeleted": deleted,
            "numTargetRowsMatchedDeleted": deletes[When.MATCHED],
            "numTargetRowsNotMatchedBySourceDeleted": deletes[When.NOT_MATCHED_BY_SOURCE],
            "numTargetRowsCopied": copied,
            "numTargetBytesAdded": written.data.size,
            "numTargetBytesRemoved": size_of(touched),
            "numOutputRows": written.data.rows,
            "numTargetFilesAdded": len(written.data.adds),
            "numTargetFilesRemoved": len(touched),
            "numTargetChangeFilesAdded": len(written.changes),
            "numTargetDeletionVectorsAdded": 0,
            "numTargetDeletionVectorsRemoved": vectors_of(touched),
            "numTargetDeletionVectorsUpdated": 0,
        }
        texts = {name: str(value) for name, value in metrics.items()} | self._watch.metrics()
        receipt = commit(
            self._target.transaction,
            self._target.spark,
            "MERGE",
            parameters=self._parameters(),
            metrics=texts,
            removed=touched,
            written=written,
            user_metadata=user_metadata,
        )
        return Changed(
            receipt=receipt,
            updated=updated,
            deleted=deleted,
            inserted=inserted,
            metrics=texts,
        )

    def _parameters(self) -> dict[str, str]:
        plan = self._first_plan
        found = {"predicate": json.dumps([plan.condition.sql])}
        for name, when in (
            ("matchedPredicates", When.MATCHED),
            ("notMatchedPredicates", When.NOT_MATCHED),
            ("notMatchedBySourcePredicates", When.NOT_MATCHED_BY_SOURCE),
        ):
            clauses = []
            for _, each in plan.of(when):
                of_clause = {} if each.condition is None else {"predicate": each.condition.sql}
                clauses.append(of_clause | {"actionType": each.clause.action.value.lower()})
            found[name] = json.dumps(clauses)
        return found


def _own_conditions(plan: MergePlan) -> list[JavaObject]:
    """The parts of the condition that speak of the table alone."""
    of_target = Scope(plan.target)
    return [part for part in conjuncts(plan.condition.java) if of_target.covers(part)]


def _pruned(rows: DataFrame, where: str | None) -> DataFrame:
    """The rows that can match: what the files are pruned by holds of rows, too, and Spark's reader
    prunes by it further."""
    return rows if where is None else rows.where(F.expr(where))


def _each_once(acted: DataFrame, plan: MergePlan) -> DataFrame:
    """Rows that several of the source delete, once; what is inserted stays as it is."""
    deleting = [i for i, _ in plan.of(When.MATCHED)]
    is_deleted = F.col(ACTION).isin(*deleting)
    return (
        acted.where(is_deleted).dropDuplicates([FILE, POSITION]).unionAll(acted.where(~is_deleted))
    )


def _several_matches(target: Target) -> InvalidRows:
    return InvalidRows(
        "Cannot perform Merge as multiple "
        "source rows matched and attempted to modify the same target row in the Delta table "
        f"{target.layout.name} in possibly conflicting ways",
        hint="make the rows of the source distinct in what the condition compares",
        error_class="DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
    )


def _total(rows: Sequence[Row], place: int) -> int:
    return sum(row[place] for row in rows)
