"""What stands in a change of a column: constraints and generated columns."""

from collections.abc import Mapping, Sequence

from tidegate.spark.alter.alteration import Alteration, shown_path
from tidegate.spark.alter.definitions import expression_of, names_in
from tidegate.spark.columns.constraints import generated_columns
from tidegate.spark.expressions.errors import InvalidCommand


def check_independent(alteration: Alteration, path: Sequence[str]) -> None:
    """Raise `InvalidCommand` where a CHECK constraint, or a generated column other than this one,
    names the column at the path, something inside of it, or what it is inside of."""
    constraints = alteration.layout.properties.constraints
    if found := _naming(alteration, path, constraints):
        raise InvalidCommand(
            "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE",
            f"Cannot alter column {shown_path(path)} because this column is referenced by the "
            "following check constraint(s): " + "; ".join(found),
        )
    generated = {
        name: sql
        for name, sql in generated_columns(alteration.layout).items()
        if (name,) != tuple(path)
    }
    if found := _naming(alteration, path, generated):
        raise InvalidCommand(
            "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE",
            f"Cannot alter column {shown_path(path)} because this column is referenced by the "
            "following generated column(s): " + "; ".join(found),
        )


def _naming(
    alteration: Alteration, path: Sequence[str], expressions: Mapping[str, str]
) -> list[str]:
    wanted = [name.lower() for name in path]
    return [
        f"{name} -> {sql}"
        for name, sql in sorted(expressions.items())
        if any(
            _overlap(wanted, [part.lower() for part in parts])
            for parts in names_in(expression_of(alteration.spark, sql))
        )
    ]


def _overlap(path: Sequence[str], other: Sequence[str]) -> bool:
    least = min(len(path), len(other))
    return path[:least] == other[:least]
