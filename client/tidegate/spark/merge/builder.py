"""MERGE as it is built: clause by clause, by the names of Delta's `DeltaMergeBuilder`."""

from collections.abc import Mapping
from typing import Self

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import LongType, StructField, StructType

from tidegate.handle import TableHandle
from tidegate.spark.commands.outcome import Changed
from tidegate.spark.expressions.arguments import Named, as_given, assigned_columns, condition_column
from tidegate.spark.merge.clauses import Action, Clause, Merge, When
from tidegate.spark.merge.merge import merge

_Condition = Column | str | None
_Values = Mapping[str, Column | str] | None


class _Clauses:
    """The clauses of a MERGE so far. Every method returns a new builder. Conditions and values are
    columns, or expressions as SQL text; wrong types raise `TypeError` and `ValueError`."""

    def __init__(
        self,
        table: TableHandle,
        source: DataFrame,
        condition: Column | str,
        *,
        alias: str | None = None,
        named: Named = as_given,
        clauses: tuple[Clause, ...] = (),
        evolves: bool = False,
    ) -> None:
        if source is None:
            raise ValueError("'source' in merge cannot be None")
        if not isinstance(source, DataFrame):
            raise TypeError("Type of 'source' in merge must be DataFrame.")
        found = condition_column(condition, named=named)
        if found is None:
            raise ValueError("'condition' in merge cannot be None")
        self._table = table
        self._source = source
        self._condition = found
        self._alias = alias
        self._named = named
        self._clauses = clauses
        self._evolves = evolves

    def whenMatchedUpdate(self, condition: _Condition = None, set: _Values = None) -> Self:
        """Set columns of a row that matches."""
        values = assigned_columns(set, name="'set' in whenMatchedUpdate", named=self._named)
        return self._with(When.MATCHED, Action.UPDATE, condition, values)

    def whenMatchedUpdateAll(self, condition: _Condition = None) -> Self:
        """Set all columns of a row that matches to those of the source by their names."""
        return self._with(When.MATCHED, Action.UPDATE, condition, None)

    def whenMatchedDelete(self, condition: _Condition = None) -> Self:
        """Delete a row that matches."""
        return self._with(When.MATCHED, Action.DELETE, condition, None)

    def whenNotMatchedInsert(self, condition: _Condition = None, values: _Values = None) -> Self:
        """Insert a row of the source that matches none; columns that are not named are null, or
        computed where they are generated."""
        found = assigned_columns(values, name="'values' in whenNotMatchedInsert")
        return self._with(When.NOT_MATCHED, Action.INSERT, condition, found)

    def whenNotMatchedInsertAll(self, condition: _Condition = None) -> Self:
        """Insert a row of the source that matches none, by the names of its columns."""
        return self._with(When.NOT_MATCHED, Action.INSERT, condition, None)

    def whenNotMatchedBySourceUpdate(
        self, condition: _Condition = None, set: _Values = None
    ) -> Self:
        """Set columns of a row that no row of the source matches."""
        values = assigned_columns(
            set, name="'set' in whenNotMatchedBySourceUpdate", named=self._named
        )
        return self._with(When.NOT_MATCHED_BY_SOURCE, Action.UPDATE, condition, values)

    def whenNotMatchedBySourceDelete(self, condition: _Condition = None) -> Self:
        """Delete a row that no row of the source matches."""
        return self._with(When.NOT_MATCHED_BY_SOURCE, Action.DELETE, condition, None)

    def withSchemaEvolution(self) -> Self:
        """Add columns and nested fields of the source that clauses assign to."""
        return self._next(self._clauses, evolves=True)

    def _with(
        self,
        when: When,
        action: Action,
        condition: _Condition,
        values: Mapping[str, Column] | None,
    ) -> Self:
        # A row that is inserted has no other columns than the source's.
        named = as_given if when is When.NOT_MATCHED else self._named
        found = condition_column(condition, named=named)
        clause = Clause(when=when, action=action, condition=found, values=values)
        return self._next((*self._clauses, clause), evolves=self._evolves)

    def _next(self, clauses: tuple[Clause, ...], *, evolves: bool) -> Self:
        return type(self)(
            self._table,
            self._source,
            self._condition,
            alias=self._alias,
            named=self._named,
            clauses=clauses,
            evolves=evolves,
        )

    def _run(self, *, user_metadata: str | None = None, retries: int = 0) -> Changed:
        what = Merge(
            source=self._source,
            condition=self._condition,
            clauses=self._clauses,
            alias=self._alias,
            evolves=self._evolves,
        )
        return merge(self._table, what, user_metadata=user_metadata, retries=retries)


class MergeBuilder(_Clauses):
    """What `Table.merge` begins."""

    def execute(self, *, user_metadata: str | None = None, retries: int = 0) -> Changed:
        """Do the MERGE in one commit; after a conflict anew on the newer version, at most `retries`
        times. See `tidegate.spark.commands.merge.merge` for what it reads and raises."""
        return self._run(user_metadata=user_metadata, retries=retries)


class DeltaMergeBuilder(_Clauses):
    """What `DeltaTable.merge` begins: Delta's own builder, coordinated."""

    def execute(self) -> DataFrame:
        """Do the MERGE in one commit. The DataFrame has one row: `num_affected_rows`,
        `num_updated_rows`, `num_deleted_rows` and `num_inserted_rows`."""
        changed = self._run()
        counts = (changed.rows, changed.updated, changed.deleted, changed.inserted)
        names = ("affected", "updated", "deleted", "inserted")
        schema = StructType([StructField(f"num_{name}_rows", LongType()) for name in names])
        return self._source.sparkSession.createDataFrame([counts], schema)
