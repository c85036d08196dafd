"""A MERGE over two DataFrames: its conditions, and the row that each clause makes.

Names are resolved where the clause may see them: those of the table and the source for matched
rows, those of the source for rows to insert, those of the table for rows that the source lacks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from tidegate.spark.columns.constraints import generated_columns
from tidegate.spark.commands.target import Target
from tidegate.spark.expressions.assignments import (
    Assigned,
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
from tidegate.spark.expressions.casts import Casts, preserved
from tidegate.spark.expressions.errors import InvalidCommand, of_spark, unresolved
from tidegate.spark.expressions.instant import Instant
from tidegate.spark.expressions.resolution import Resolved, Scope, has_subquery
from tidegate.spark.merge.clauses import Action, Clause, Merge, When
from tidegate.spark.merge.evolution import evolved
from tidegate.spark.tables.building import few_calls
from tidegate.spark.values.defaults import default_of, default_value
from tidegate.spark.values.identity import check_given, identity_columns


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ResolvedClause:
    """`row` are the table's columns as the clause leaves them, nothing for a DELETE. Generated
    columns that are `computed` are left out of it."""

    clause: Clause
    condition: Resolved | None
    row: Mapping[str, Column]
    computed: frozenset[str] = frozenset()
    numbered: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MergePlan:
    """A MERGE. Its expressions are over the columns of `Target.nothing`, and so of all rows of the
    target, and over those of the source. `current` are the table's columns as they are, of the
    types that they have afterwards."""

    of_target: Scope
    of_source: Scope
    condition: Resolved
    clauses: Sequence[ResolvedClause]
    current: Mapping[str, Column]

    @property
    def numbered(self) -> frozenset[str]:
        """The identity columns that inserted rows need numbers of; they are null there."""
        return frozenset().union(*(each.numbered for each in self.clauses))

    def of(self, when: When) -> list[tuple[int, ResolvedClause]]:
        """The clauses for these rows, with their numbers."""
        return [(i, each) for i, each in enumerate(self.clauses) if each.clause.when is when]


class Planner:
    """Resolves a MERGE, over no rows, so that what is wrong is told before any job."""

    def __init__(self, merge: Merge, target: Target, *, evolves: bool) -> None:
        self._merge = merge
        self._target = target
        self._evolves = evolves
        self._table = target.layout.spark_schema
        self._known = {field.name: field for field in self._table.fields}
        self._casts = Casts.of(target.spark, evolves=evolves)
        self._widening = Casts.of(target.spark, evolves=True)
        source = merge.source.schema
        self._paths = [self._paths_of(clause, source) for clause in merge.clauses]
        self.schema = self._table
        if evolves:
            own = [c.when is not When.NOT_MATCHED_BY_SOURCE for c in merge.clauses]
            self.schema = evolved(
                self._table,
                source,
                paths=[
                    p
                    for paths, is_own in zip(self._paths, own, strict=True)
                    if is_own
                    for p in paths
                ],
                has_star=any(clause.is_star for clause in merge.clauses),
                widens=target.layout.properties.type_widening,
            )

    @few_calls()
    def plan(self) -> MergePlan:
        """What the MERGE does to any rows. Raises `InvalidCommand`."""
        try:
            return self._plan()
        except InvalidCommand:
            raise
        except (AnalysisException, ParseException) as error:
            raise of_spark(error) from error

    def _plan(self) -> MergePlan:
        sides = _Sides(self._target.nothing, self._merge.source, self._target.instant)
        current = {field.name: self._current(sides, field.name) for field in self.schema.fields}
        condition = self._condition(sides.both, self._merge.condition, "search condition")
        clauses = [
            self._clause(sides, clause, paths, current)
            for clause, paths in zip(self._merge.clauses, self._paths, strict=True)
        ]
        checked = [value for each in clauses for value in each.row.values()]
        sides.both.frame.select(*current.values(), *checked)
        return MergePlan(
            of_target=sides.target,
            of_source=sides.source,
            condition=condition,
            clauses=clauses,
            current=current,
        )

    def _current(self, sides: "_Sides", name: str) -> Column:
        known, wanted = self._known, self.schema[name].dataType
        if name not in known:
            return F.lit(None).cast(wanted)
        value = sides.of_target[name].column
        return self._widening.stored(value, known[name].dataType, wanted, name=name)

    def _paths_of(self, clause: Clause, source: StructType) -> list[Path]:
        found = []
        for name in clause.values or {}:
            parts = name_parts(self._target.spark, name)
            found.append(self._path(clause, name, parts, source))
        if clause.action is Action.INSERT:
            for path in found:
                if len(path) > 1:
                    raise InvalidCommand(
                        "DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION",
                        "Nested field is not supported in the INSERT clause of MERGE operation "
                        f"(field = {'.'.join(path)})",
                    )
            if len(set(found)) < len(found):
                raise InvalidCommand(
                    "DELTA_DUPLICATE_COLUMNS_ON_INSERT", "Duplicate column names in INSERT clause"
                )
        check_distinct(found)
        return found

    def _path(self, clause: Clause, name: str, parts: Path, source: StructType) -> Path:
        alias = self._target.alias
        own = without_qualifier(parts, self._table, alias)
        try:
            return path_of(own, self._table)
        except UnknownColumn:
            pass
        except InvalidCommand as refusal:
            if refusal.error_class != "FIELD_NOT_FOUND" or not self._may_add(clause):
                raise
        if self._may_add(clause):
            try:
                return path_of(without_qualifier(own, source, alias), source)
            except UnknownColumn:
                pass
        columns = [f"{alias}.{each}" for each in self._table.names]
        raise unresolved(name, f"{clause.action.value} clause", columns)

    def _may_add(self, clause: Clause) -> bool:
        return self._evolves and clause.when is not When.NOT_MATCHED_BY_SOURCE

    def _clause(
        self,
        sides: "_Sides",
        clause: Clause,
        paths: Sequence[Path],
        current: Mapping[str, Column],
    ) -> ResolvedClause:
        scope = sides.scope(clause.when)
        kind = clause.action.value
        condition = (
            None
            if clause.condition is None
            else self._condition(scope, clause.condition, f"{kind} condition")
        )
        if clause.action is Action.DELETE:
            return ResolvedClause(clause=clause, condition=condition, row={})
        if clause.is_star:
            row = self._star(sides, clause, current)
            given = set(row)
        else:
            target = self._target
            found = with_defaults(
                target.spark, target.layout, paths, list((clause.values or {}).values())
            )
            values = _resolved(scope, found, f"{kind} clause")
            assigned = tree_of(paths, values)
            row = self._assigned(assigned, current)
            given = set(assigned)
        if clause.action is Action.UPDATE:
            self._target.check_numbers_stay(given)
            row = dict(current) | row
        else:
            row = {
                field.name: row[field.name] if field.name in row else self._missing(scope, field)
                for field in self.schema.fields
            }
        layout = self._target.layout
        numbered: frozenset[str] = frozenset()
        if clause.action is Action.INSERT:
            check_given(layout, given)
            numbered = frozenset(identity_columns(layout)) - given
        return ResolvedClause(
            clause=clause,
            condition=condition,
            row=row,
            computed=frozenset(generated_columns(layout)) - given,
            numbered=numbered,
        )

    def _missing(self, scope: Scope, field: StructField) -> Column:
        """What is inserted into a column that is not named."""
        if field.name in self._table.names and default_of(field) is not None:
            value = default_value(field, self._target.layout, self._target.spark)
            return scope.resolve([value])[0].column
        return F.lit(None).cast(field.dataType)

    def _assigned(
        self, assigned: Mapping[str, Assigned], current: Mapping[str, Column]
    ) -> dict[str, Column]:
        return {
            name: new_value(
                self._casts, value, current[name], self.schema[name].dataType, name=name
            )
            for name, value in assigned.items()
        }

    def _star(
        self, sides: "_Sides", clause: Clause, current: Mapping[str, Column]
    ) -> dict[str, Column]:
        given = {name.lower(): value for name, value in sides.of_source.items()}
        row = {}
        for field in self.schema.fields:
            found = given.get(field.name.lower())
            if found is None:
                if self._evolves or field.name in generated_columns(self._target.layout):
                    continue
                raise unresolved(
                    field.name,
                    f"{clause.action.value} clause",
                    sides.scope(When.NOT_MATCHED).columns,
                )
            keeps = self._evolves and clause.action is Action.UPDATE
            row[field.name] = (
                preserved(
                    self._casts,
                    found.column,
                    found.data_type,
                    current[field.name],
                    field.dataType,
                    name=field.name,
                )
                if keeps
                else self._casts.stored(
                    found.column, found.data_type, field.dataType, name=field.name
                )
            )
        return row

    def _condition(self, scope: Scope, condition: Column, what: str) -> Resolved:
        try:
            found = scope.condition(condition)
        except AnalysisException as error:
            raise _refusal(error, scope, what) from error
        if has_subquery(self._target.spark, found.java):
            raise InvalidCommand(
                "DELTA_UNSUPPORTED_SUBQUERY",
                f"Subqueries are not supported in the {what} of MERGE operation "
                f"(condition = {found.shown})",
            )
        if not found.is_deterministic:
            raise InvalidCommand(
                "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED",
                f"Non-deterministic functions are not supported in the {what} of MERGE operation "
                f"(condition = {found.shown})",
            )
        return found


class _Sides:
    """The two sides of a MERGE as scopes, and their columns by name."""

    def __init__(self, target: DataFrame, source: DataFrame, instant: Instant) -> None:
        self.both = Scope(target.crossJoin(source), instant)
        self.target = Scope(target, instant)
        self.source = Scope(source, instant)
        self.of_target = self.target.named()

    @cached_property
    def of_source(self) -> Mapping[str, Resolved]:
        return self.source.named()

    def scope(self, when: When) -> Scope:
        """What a clause for these rows may name."""
        match when:
            case When.MATCHED:
                return self.both
            case When.NOT_MATCHED:
                return self.source
            case When.NOT_MATCHED_BY_SOURCE:
                return self.target


def _resolved(scope: Scope, values: Sequence[Column], what: str) -> list[Resolved]:
    try:
        return scope.resolve(values)
    except InvalidCommand:
        raise
    except AnalysisException as error:
        raise _refusal(error, scope, what) from error


def _refusal(error: AnalysisException, scope: Scope, what: str) -> InvalidCommand:
    condition = error.getCondition() or ""
    if condition.startswith("UNRESOLVED_COLUMN"):
        name = (error.getMessageParameters() or {}).get("objectName", "a name")
        return unresolved(name, what, scope.columns)
    if condition == "INVALID_WHERE_CONDITION":
        return InvalidCommand(
            "DELTA_AGGREGATION_NOT_SUPPORTED",
            f"Aggregate functions are not supported in the {what} of MERGE operation",
        )
    return of_spark(error)
