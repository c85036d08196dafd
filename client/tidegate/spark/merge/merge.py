"""MERGE: the rows that match are found first. Then those that change are marked in their files and
written to new ones, or the files that hold one are written again, with what is inserted. A MERGE
that only inserts needs one pass.
"""

import json
from collections.abc import Mapping
from functools import reduce
from operator import and_
from time import monotonic
from uuid import uuid4

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidegate.handle import TableHandle
from tidegate.models import DataFile
from tidegate.spark.columns.mapping import with_marks
from tidegate.spark.commands.marking import Marks, mark
from tidegate.spark.commands.outcome import (
    Changed,
    Rewrite,
    commit,
    rewriting,
)
from tidegate.spark.commands.target import Target, size_of
from tidegate.spark.errors import InvalidRows, UnsupportedTable
from tidegate.spark.expressions.pruning import fixed_parts, predicate_text
from tidegate.spark.expressions.resolution import column_of, conjuncts
from tidegate.spark.merge.clauses import Action, Merge, When
from tidegate.spark.merge.identity_numbers import note_numbers, with_numbers
from tidegate.spark.merge.plan import MergePlan, Planner
from tidegate.spark.merge.rows import (
    ACTION,
    OF_SOURCE,
    OF_TARGET,
    Outcome,
    flagged,
    inserts,
    settled,
    with_action,
)
from tidegate.spark.merge.source import Fact, MergeSource, SourceFacts
from tidegate.spark.merge.touched import Touched, acting, marked_rows
from tidegate.spark.session_settings import MERGE_SCHEMA
from tidegate.spark.storage.hadoop import jvm_of
from tidegate.spark.tables.assignment import quoted
from tidegate.spark.tables.places import FILE, POSITION
from tidegate.spark.tables.predicates import joined
from tidegate.spark.write.files import writable_layout
from tidegate.spark.write.idempotence import is_done
from tidegate.spark.write.repeats import redone

_OPERATION = "MERGE"


def merge(
    table: TableHandle, what: Merge, *, user_metadata: str | None = None, retries: int = 0
) -> Changed:
    """Do the MERGE in one commit.

    What is recorded as read are the parts of the condition that speak of the table alone, with the
    bounds that the source's values give; where rows change that the source lacks, or the source
    reads the table, all of it, in the latter case as of the version that the source is of. Raises
    `InvalidCommand` before any job, `InvalidRows` where several rows of the source match one that
    would change, and what `delete` and `Table.append` raise.
    """

    def once(is_repeated: bool) -> Changed:
        spark = what.source.sparkSession
        removes = not what.inserts_only
        target = Target.begin(
            table, spark, alias=what.alias, removes=removes, is_repeated=is_repeated
        )
        if is_done(target.transaction, spark):
            return Changed(receipt=None)
        target = target.read_by(what.source, removes=removes)
        evolves = what.evolves or str(spark.conf.get(MERGE_SCHEMA, "false")).lower() == "true"
        planner = Planner(what, target, evolves=evolves)
        return _Execution(what, target, planner).run(user_metadata)

    return redone(once, retries=retries, clock_s=monotonic)


class _Execution:
    def __init__(self, what: Merge, target: Target, planner: Planner) -> None:
        self._what = what
        self._target = target
        self._passes = target.passes(_OPERATION)
        self._plan = planner.plan()
        if planner.schema != target.layout.spark_schema:
            schema, properties = with_marks(
                planner.schema, target.layout, new_name=lambda: f"col-{uuid4()}"
            )
            target.transaction.update_metadata(schema=schema, set_properties=properties)
        self._layout = writable_layout(target.transaction)
        if self._plan.numbered and self._layout.properties.change_data_feed:
            raise UnsupportedTable(
                f"table {self._layout.name} has identity columns and a change data feed, and rows "
                "that a MERGE of this client inserts would have other numbers there",
                hint="append the rows that are new, and merge the others",
            )

    def run(self, user_metadata: str | None) -> Changed:
        with self._passes:
            return self._run(user_metadata)

    def _run(self, user_metadata: str | None) -> Changed:
        what, target = self._what, self._target
        self._passes.reads_source()
        source = MergeSource.of(what.source)
        rows, plan = flagged(source.frame, OF_SOURCE), self._plan
        looks_everywhere = bool(what.of(When.NOT_MATCHED_BY_SOURCE))
        facts = SourceFacts.of(plan, rows, target, prunes=not looks_everywhere)
        known = [] if looks_everywhere else [*_own_facts(plan, target), *facts.known]
        where = joined(fact.text for fact in known if fact.text is not None)
        files = target.transaction.filter_files(where)
        matching = reduce(and_, (fact.is_true for fact in known)) if known else None
        with rewriting(target.transaction, self._layout, target.spark) as written:
            if what.inserts_only:
                touched = Touched(by_clause=[0] * len(what.clauses))
                self._passes.writes(0, of=len(files))
                self._insert(written, rows, files, matching)
            else:
                self._passes.scans(len(files))
                touched = self._touched(rows, files, matching)
                self._passes.writes(len(touched.files), of=len(files))
                self._rewrite(written, rows, touched)
            marks = self._marks(written, touched)
            of_source = {
                "numSourceRows": facts.rows,
                "materializeSourceTimeMs": source.materialized_ms,
            }
            return self._commit(written, touched, marks, own=of_source, user_metadata=user_metadata)

    def _insert(
        self, written: Rewrite, source: DataFrame, files: list[DataFile], matching: Column | None
    ) -> None:
        table, plan = _pruned(self._target.rows(files), matching), self._plan
        unmatched = source.join(table, plan.condition.column, "left_anti")
        acted = inserts(unmatched, plan)
        outcome = Outcome(plan=plan, layout=self._layout)
        self._write(written, outcome.rows(acted))

    def _touched(
        self, source: DataFrame, files: list[DataFile], matching: Column | None
    ) -> Touched:
        """The files with rows that match, by a job that counts what becomes of each one's rows."""
        what, target = self._what, self._target
        table, plan = _pruned(target.rows(files), matching), self._plan
        how = "left_outer" if what.of(When.NOT_MATCHED_BY_SOURCE) else "inner"
        acted = with_action(table.join(source, plan.condition.column, how), plan)
        found = Touched.of(acted, what, files, marks=target.marks_rows(_OPERATION))
        if found.most_matches > 1 and not what.may_match_often:
            raise _several_matches(target)
        return found

    def _marks(self, written: Rewrite, touched: Touched) -> Marks:
        if touched.positions is None:
            return Marks(gone=tuple(touched.files))
        return mark(self._target, written, touched.files, touched.positions)

    def _rewrite(self, written: Rewrite, source: DataFrame, touched: Touched) -> None:
        has_inserts = bool(self._what.of(When.NOT_MATCHED))
        if not touched.changes_any and not has_inserts:
            return
        if has_inserts and touched.positions is None:
            # How many rows are new is what is left of those that are written.
            self._target.check_counts(touched.files)
        rows = self._target.rows(touched.files, with_ids=True)
        if touched.positions is not None:
            rows = marked_rows(rows, touched.positions).alias(self._target.alias)
        table, plan = flagged(rows, OF_TARGET), self._plan
        how = "full_outer" if has_inserts else "left_outer"
        acted = with_action(table.join(source, plan.condition.column, how), plan)
        if touched.positions is not None:
            acted = acting(acted)
        has_changes = self._layout.properties.change_data_feed
        if has_changes:
            acted, plan = settled(acted, plan)
        outcome = Outcome(plan=plan, layout=self._layout)
        self._write(written, outcome.rows(acted))
        if has_changes:
            if self._what.may_match_often:
                acted = _each_once(acted, plan)
            written.write_changes(outcome.changes(acted))

    def _write(self, written: Rewrite, rows: DataFrame) -> None:
        """Write rows with their action by partition, so that no task writes into all of them."""
        columns = [c for c in self._layout.partition_columns if c in rows.columns]
        if columns:
            rows = rows.repartition(*map(quoted, columns))
        plan = self._plan
        written.write(with_numbers(rows, self._layout, plan))

    def _commit(
        self,
        written: Rewrite,
        touched: Touched,
        marks: Marks,
        *,
        own: Mapping[str, int],
        user_metadata: str | None,
    ) -> Changed:
        updates = touched.of_action(self._what, Action.UPDATE)
        deletes = touched.of_action(self._what, Action.DELETE)
        updated, deleted = sum(updates.values()), sum(deletes.values())
        records = sum(self._target.records(touched.files).values())
        copied = records - updated - deleted if touched.positions is None else 0
        inserted = written.data.rows - copied - updated
        if touched.positions is None and (inserted < 0 or not self._what.of(When.NOT_MATCHED)):
            self._target.check_all_there(touched.files, rows=written.data.rows + deleted)
        if inserted:
            note_numbers(self._target.transaction, self._layout, written.data, self._plan.numbered)
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
            "numTargetBytesRemoved": size_of(marks.gone),
            "numOutputRows": written.data.rows,
            "numTargetFilesAdded": len(written.data.adds),
            "numTargetFilesRemoved": len(marks.gone),
            "numTargetChangeFilesAdded": len(written.changes),
        }
        metrics |= {f"numTarget{name}": count for name, count in marks.metrics().items()}
        texts = {name: str(value) for name, value in metrics.items()} | self._passes.metrics()
        receipt = commit(
            self._target.transaction,
            self._target.spark,
            _OPERATION,
            parameters=self._parameters(),
            metrics=texts,
            removed=marks.removed,
            marked=marks.after,
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
        plan = self._plan
        found = {"predicate": json.dumps([plan.condition.recorded])}
        for name, when in (
            ("matchedPredicates", When.MATCHED),
            ("notMatchedPredicates", When.NOT_MATCHED),
            ("notMatchedBySourcePredicates", When.NOT_MATCHED_BY_SOURCE),
        ):
            clauses = []
            for _, each in plan.of(when):
                of_clause = {} if each.condition is None else {"predicate": each.condition.recorded}
                clauses.append(of_clause | {"actionType": each.clause.action.value.lower()})
            found[name] = json.dumps(clauses)
        return found


def _own_facts(plan: MergePlan, target: Target) -> list[Fact]:
    """The parts of the condition that speak of the table alone."""
    spark, layout = target.spark, target.layout
    parts = (own for part in fixed_parts(spark, plan.condition.java) for own in conjuncts(part))
    return [
        Fact(
            text=predicate_text(spark, layout, own),
            is_true=column_of(jvm_of(spark), own),
        )
        for own in parts
        if plan.of_target.covers(own)
    ]


def _pruned(rows: DataFrame, matching: Column | None) -> DataFrame:
    """The rows that can match: what the files are pruned by holds of rows, too, and Spark's reader
    prunes by it further."""
    return rows if matching is None else rows.where(matching)


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
