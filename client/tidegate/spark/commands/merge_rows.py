"""The rows of a MERGE: which clause each is for, and what it becomes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidegate.spark.commands.change_data import CHANGE_TYPE, DELETE, INSERT, POSTIMAGE, PREIMAGE
from tidegate.spark.commands.clauses import Action, When
from tidegate.spark.commands.merge_plan import MergePlan, ResolvedClause
from tidegate.spark.tables.assignment import quoted
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.write.constraints import generated_columns

OF_SOURCE = "__tidegate_source"
OF_TARGET = "__tidegate_target"
ACTION = "__tidegate_action"
_COMPUTES = "__tidegate_computes"
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """The rows that a MERGE leaves, out of those with their action."""

    plan: MergePlan
    layout: TableLayout

    def rows(self, acted: DataFrame) -> DataFrame:
        """The rows of the table afterwards, those that stay as they are among them."""
        deletes = [i for i, each in enumerate(self.plan.clauses) if not each.row]
        staying = acted.where(~quoted(ACTION).isin(_DROP, *deletes))
        columns = {
            name: self._by_action(name, otherwise=current)
            for name, current in self._written(self.plan.current).items()
        }
        named = (value.alias(name) for name, value in columns.items())
        return self._generated(staying.select(*named, self._computes().alias(_COMPUTES)))

    def changes(self, acted: DataFrame) -> DataFrame:
        """The rows that change, as they were and as they became, with `CHANGE_TYPE`."""
        current = self._written(self.plan.current)
        sides = F.array()
        for i, clause in enumerate(self.plan.clauses):
            after = self._written(clause.row)
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
        computes = self._computes().alias(_COMPUTES)
        shown = acted.where(quoted(ACTION) >= 0).select(computes, F.inline(sides))
        columns = {name: quoted(name) for name in current}
        computing = F.col(_COMPUTES) & F.col(CHANGE_TYPE).isin(INSERT, POSTIMAGE)
        plain = shown.select(*columns.values(), quoted(CHANGE_TYPE), computing.alias(_COMPUTES))
        return self._generated(plain)

    def _by_action(self, name: str, *, otherwise: Column) -> Column:
        value = None
        for i, clause in enumerate(self.plan.clauses):
            if clause.row:
                chosen = quoted(ACTION) == i
                made = clause.row[name]
                value = F.when(chosen, made) if value is None else value.when(chosen, made)
        if value is None:
            return otherwise
        return value if self._inserts_only else value.otherwise(otherwise)

    @property
    def _inserts_only(self) -> bool:
        """Whether there are no rows of the table to stay as they are."""
        return all(each.clause.when is When.NOT_MATCHED for each in self.plan.clauses)

    def _written(self, row: Mapping[str, Column]) -> dict[str, Column]:
        """Without the generated columns that no clause is given: they are computed of all rows."""
        never = self._never_given()
        return {name: value for name, value in row.items() if name not in never}

    def _never_given(self) -> frozenset[str]:
        found = frozenset(generated_columns(self.layout))
        for clause in self._making():
            found &= clause.computed
        return found

    def _sometimes_given(self) -> frozenset[str]:
        found: frozenset[str] = frozenset()
        for clause in self._making():
            found |= clause.computed
        return found - self._never_given()

    def _making(self) -> Iterable[ResolvedClause]:
        return (clause for clause in self.plan.clauses if clause.row)

    def _computes(self) -> Column:
        """Whether the row is of a clause that leaves a generated column to be computed which others
        give."""
        names = self._sometimes_given()
        chosen = [i for i, each in enumerate(self.plan.clauses) if each.computed & names]
        return quoted(ACTION).isin(*chosen) if chosen else F.lit(False)

    def _generated(self, rows: DataFrame) -> DataFrame:
        known = generated_columns(self.layout)
        for name in sorted(self._sometimes_given()):
            made = F.expr(known[name]).cast(self.layout.spark_schema[name].dataType)
            rows = rows.withColumn(name, F.when(F.col(_COMPUTES), made).otherwise(quoted(name)))
        return rows.drop(_COMPUTES)


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
