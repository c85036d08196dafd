"""The rows of a MERGE: which clause each is for, and what it becomes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidegate.spark.columns.constraints import generated_columns, with_computed
from tidegate.spark.commands.change_data import (
    CHANGE_TYPE,
    DELETE,
    INSERT,
    POSTIMAGE,
    PREIMAGE,
    computed_once,
)
from tidegate.spark.merge.clauses import Action, When
from tidegate.spark.merge.plan import MergePlan, ResolvedClause
from tidegate.spark.tables.assignment import chosen, quoted
from tidegate.spark.tables.building import few_calls
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.tables.row_ids import kept_ids

OF_SOURCE = "__tidegate_source"
OF_TARGET = "__tidegate_target"
ACTION = "__tidegate_action"
_MADE = "__tidegate_made_"
_COPY = -1
_DROP = -2


def flagged(rows: DataFrame, flag: str) -> DataFrame:
    """The rows with a column that tells after an outer join that there is one."""
    return rows.select("*", F.lit(True).alias(flag))


def with_action(joined: DataFrame, plan: MergePlan) -> DataFrame:
    """The joined rows with the number of the clause that each is for."""
    has_target = quoted(OF_TARGET).isNotNull() if OF_TARGET in joined.columns else F.lit(True)
    has_source = quoted(OF_SOURCE).isNotNull()
    action = (
        F.when(has_target & has_source, _first(plan.of(When.MATCHED), otherwise=_COPY))
        .when(has_target, _first(plan.of(When.NOT_MATCHED_BY_SOURCE), otherwise=_COPY))
        .otherwise(_first(plan.of(When.NOT_MATCHED), otherwise=_DROP))
    )
    return joined.select("*", action.alias(ACTION))


def inserts(unmatched: DataFrame, plan: MergePlan) -> DataFrame:
    """Rows of the source alone, with the number of the clause that each is for."""
    action = _first(plan.of(When.NOT_MATCHED), otherwise=_DROP)
    return unmatched.select("*", action.alias(ACTION))


def settled(acted: DataFrame, plan: MergePlan) -> tuple[DataFrame, MergePlan]:
    """The rows with what each becomes computed once, and the plan that takes it from there. Raises
    `InvalidRows`."""
    made: list[Column] = []
    clauses: list[ResolvedClause] = []
    with few_calls():
        for i, clause in enumerate(plan.clauses):
            place = quoted(f"{_MADE}{i}")
            if clause.row:
                row = F.struct(*(value.alias(name) for name, value in clause.row.items()))
                made.append(F.when(quoted(ACTION) == i, row).alias(f"{_MADE}{i}"))
            taken = {name: place.getField(name) for name in clause.row}
            clauses.append(replace(clause, row=taken))
    return computed_once(acted.select("*", *made)), replace(plan, clauses=clauses)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """The rows that a MERGE leaves, out of those with their action."""

    plan: MergePlan
    layout: TableLayout

    @few_calls()
    def rows(self, acted: DataFrame) -> DataFrame:
        """The rows of the table afterwards, those that stay as they are among them, each with its
        action, and with the ids of those that are there already where the table tracks them."""
        deletes = [i for i, each in enumerate(self.plan.clauses) if not each.row]
        staying = acted.where(~quoted(ACTION).isin(_DROP, *deletes))
        makers = [
            (quoted(ACTION) == i, each.row) for i, each in enumerate(self.plan.clauses) if each.row
        ]
        columns = {
            name: self._by_action(makers, name, otherwise=current)
            for name, current in self.plan.current.items()
        }
        ids = kept_ids(staying, self.layout, quoted(ACTION) != _COPY)
        return self._generated(chosen(staying, {**columns, **ids, ACTION: None}))

    @few_calls()
    def changes(self, acted: DataFrame) -> DataFrame:
        """The rows that change, as they were and as they became, with `CHANGE_TYPE`."""
        current = self.plan.current
        sides = F.array()
        for i, clause in enumerate(self.plan.clauses):
            after = clause.row
            match clause.clause.action:
                case Action.DELETE:
                    found = [_image(current, DELETE)]
                case Action.INSERT:
                    found = [_image(after, INSERT)]
                case Action.UPDATE:
                    found = [_image(current, PREIMAGE), _image(after, POSTIMAGE)]
            chosen = F.array(*found)
            sides = (
                F.when(quoted(ACTION) == i, chosen)
                if i == 0
                else sides.when(quoted(ACTION) == i, chosen)
            )
        shown = acted.where(quoted(ACTION) >= 0).select(ACTION, F.inline(sides))
        is_made = F.col(CHANGE_TYPE).isin(INSERT, POSTIMAGE)
        made_by = F.when(is_made, F.col(ACTION)).otherwise(_COPY).alias(ACTION)
        return self._generated(shown.select(*map(quoted, current), CHANGE_TYPE, made_by)).drop(
            ACTION
        )

    def _by_action(
        self,
        makers: Sequence[tuple[Column, Mapping[str, Column]]],
        name: str,
        *,
        otherwise: Column,
    ) -> Column:
        value = None
        for is_its, row in makers:
            made = row[name]
            if made is otherwise and not self._inserts_only:
                continue
            value = F.when(is_its, made) if value is None else value.when(is_its, made)
        if value is None:
            return otherwise
        return value if self._inserts_only else value.otherwise(otherwise)

    @property
    def _inserts_only(self) -> bool:
        """Whether there are no rows of the table to stay as they are."""
        return all(each.clause.when is When.NOT_MATCHED for each in self.plan.clauses)

    def _generated(self, rows: DataFrame) -> DataFrame:
        """The rows, which have their action, with the generated columns that its clause is not
        given."""
        clauses = list(enumerate(self.plan.clauses))
        where = {}
        for name in generated_columns(self.layout):
            if makers := [i for i, clause in clauses if name in clause.computed]:
                where[name] = F.col(ACTION).isin(*makers)
        return with_computed(rows, self.layout, where)


def _first(clauses: Sequence[tuple[int, ResolvedClause]], *, otherwise: int) -> Column:
    """The number of the first clause whose condition is true."""
    found = F.lit(otherwise)
    for i, clause in reversed(clauses):
        if clause.condition is None:
            found = F.lit(i)
        else:
            found = F.when(clause.condition.column, F.lit(i)).otherwise(found)
    return found


def _image(columns: Mapping[str, Column], kind: str) -> Column:
    values = (value.alias(name) for name, value in columns.items())
    return F.struct(*values, F.lit(kind).alias(CHANGE_TYPE))
