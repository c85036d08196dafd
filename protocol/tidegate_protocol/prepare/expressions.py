"""The SQL in a table's metadata: CHECK constraints, generated columns and column invariants
(PROTOCOL.md, "CHECK Constraints", "Generated Columns"; Delta: `Constraints`, `GeneratedColumn`).

Whether rows obey them is the writers' duty: whoever makes a rule for rows that are there says that
they were read. A text that no writer could read would close the table to all of them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tidegate_protocol.base.text import excerpt
from tidegate_protocol.features.column_mapping import columns
from tidegate_protocol.features.known import GENERATION_EXPRESSION, INVARIANTS
from tidegate_protocol.features.properties import TableProperties
from tidegate_protocol.proposal.demands import Obeys
from tidegate_protocol.scan.predicates import InvalidPredicate, check_expression, go_on
from tidegate_protocol.schema.data_types import StructType, physical_name
from tidegate_protocol.schema.table_schema import InvalidSchema

MOST_TEXT = 16 * 1024
"""Characters of new expressions that are read of one commit; a few hundred milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Expression:
    """One expression of a table, and the columns that it may name. `physical` is what files call
    the column that it computes; a constraint has none."""

    owner: str
    text: str
    columns: StructType
    is_condition: bool
    physical: tuple[str, ...] = ()

    def reason(self, pause: Callable[[], None]) -> str | None:
        """What is wrong with it."""
        try:
            check_expression(self.text, self.columns, is_condition=self.is_condition, pause=pause)
        except InvalidPredicate as error:
            return str(error)
        return None


def check_expressions(
    properties_before: TableProperties,
    schema_before: StructType,
    properties: TableProperties,
    schema: StructType,
    *,
    pause: Callable[[], None] = go_on,
) -> None:
    """Raise `InvalidSchema` where an expression does not parse, or names a column that the table
    does not have. One that the table had is let be where it was no better there, and all beyond
    the first `MOST_TEXT` characters of what is new: reading them takes too long. `pause` is that of
    `predicates.parse_predicate`."""
    known = {
        (expression.owner, expression.text): expression
        for expression in _expressions(properties_before, schema_before)
    }
    read = 0
    for expression in _expressions(properties, schema):
        before = known.get((expression.owner, expression.text))
        if before == expression:
            continue
        read += len(expression.text)
        if read > MOST_TEXT:
            return
        reason = expression.reason(pause)
        if reason is not None and (before is None or before.reason(pause) is None):
            raise InvalidSchema(f"{expression.owner} ({excerpt(expression.text)}): {reason}")


def new_rules(
    properties_before: TableProperties,
    schema_before: StructType,
    properties: TableProperties,
    schema: StructType,
) -> Iterator[Obeys]:
    """What has to be true of rows from now on, and had not to be before: of CHECK constraints,
    generated columns and column invariants (PROTOCOL.md, "Column Invariants"). Where a name is
    another column's now, every rule is another one."""
    rules = list(_rules(properties, schema))
    if not rules:
        return
    before, after = (
        {tuple(map(str.lower, path)): physical for path, physical, _ in columns(each)}
        for each in (schema_before, schema)
    )
    is_same = all(before.get(path, physical) == physical for path, physical in after.items())
    known = {key for key, _ in _rules(properties_before, schema_before)} if is_same else set()
    for key, owner in rules:
        if key not in known:
            yield Obeys(rule=owner)


def _rules(
    properties: TableProperties, schema: StructType
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Each rule: by its text and what files call the column, and what messages call it."""
    for expression in _expressions(properties, schema):
        yield (expression.text, *expression.physical), expression.owner
    for path, physical, field in columns(schema):
        if INVARIANTS in field.metadata:
            owner = f"the invariant of the column {excerpt('.'.join(path))}"
            yield (str(field.metadata[INVARIANTS]), *physical), owner


def _expressions(properties: TableProperties, schema: StructType) -> Iterator[_Expression]:
    for name, text in properties.constraints.items():
        yield _Expression(
            owner=f"the CHECK constraint {excerpt(name)}",
            text=text,
            columns=schema,
            is_condition=True,
        )
    # What is computed is not there yet where something else is.
    given = tuple(f for f in schema.fields if GENERATION_EXPRESSION not in f.metadata)
    for field in schema.fields:
        if GENERATION_EXPRESSION in field.metadata:
            yield _Expression(
                owner=f"the generated column {excerpt(field.name)}",
                text=str(field.metadata[GENERATION_EXPRESSION]),
                columns=StructType(fields=given),
                is_condition=False,
                physical=(physical_name(field),),
            )
