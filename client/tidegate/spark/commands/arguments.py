"""What users hand to commands, checked as Delta's Python API checks it."""

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F


def condition_column(condition: Column | str | None, *, name: str = "'condition'") -> Column | None:
    """The condition as a column; None for none. Raises `TypeError`."""
    if condition is None or isinstance(condition, Column):
        return condition
    if isinstance(condition, str):
        return F.expr(condition)
    raise TypeError(
        f"{name} must be a Spark SQL Column or a string (expression in SQL syntax), found to be "
        f"of type {type(condition)}"
    )


def assigned_columns(values: Mapping[str, Column | str] | None, *, name: str) -> dict[str, Column]:
    """The values as columns, by the name of what they are assigned to. Raises `ValueError` for
    none, and `TypeError`."""
    if values is None:
        raise ValueError(f"{name} cannot be None")
    if not isinstance(values, dict):
        raise TypeError(f"{name} must be a dict, found to be {type(values)}")
    found = {}
    for column, value in values.items():
        if not isinstance(column, str):
            raise TypeError(
                f"Keys of dict in {name} must contain only strings with column names, found "
                f"{column!r} of type {type(column)}"
            )
        if not isinstance(value, Column | str):
            raise TypeError(
                f"Values of dict in {name} must contain only Spark SQL Columns or strings "
                f"(expressions in SQL syntax) as values, found {value!r} of type {type(value)}"
            )
        found[column] = F.expr(value) if isinstance(value, str) else value
    return found
