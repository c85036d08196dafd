"""What users hand to commands, checked as Delta's Python API checks it."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from pyspark.sql import Column
from pyspark.sql import functions as F

T = TypeVar("T")
Named = Callable[[Column], Column]
"""Gives a column's parts other names."""
_DEFAULT = "DEFAULT"
_WORDS = {int: "an int", str: "a string", bool: "a boolean"}


def of_type(value: object, kind: type[T], *, name: str) -> T:
    """The value of an argument that Delta takes of one type only: int, str or bool. Raises
    `ValueError`."""
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ValueError(f"{name} needs to be {_WORDS[kind]} but got '{type(value)}'.")
    return value


def texts(values: Mapping[str, str] | None, *, name: str) -> dict[str, str]:
    """Texts by their names; none for None. Raises `ValueError`."""
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise ValueError(f"{name} needs to be a dict but got '{type(values)}'.")
    for key, value in values.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise ValueError(
                f"All keys and values of {name} need to be a string but got {key!r} of type "
                f"'{type(key)}' with {value!r} of type '{type(value)}'."
            )
    return dict(values)


def as_given(column: Column) -> Column:
    """The column itself."""
    return column


def condition_column(
    condition: Column | str | None, *, name: str = "'condition'", named: Named = as_given
) -> Column | None:
    """The condition as a column, a given one as `named` has it; None for none. Raises
    `TypeError`."""
    if condition is None:
        return None
    if isinstance(condition, Column):
        return named(condition)
    if isinstance(condition, str):
        return expression(condition)
    raise TypeError(
        f"{name} must be a Spark SQL Column or a string (expression in SQL syntax), found to be "
        f"of type {type(condition)}"
    )


def assigned_columns(
    values: Mapping[str, Column | str] | None, *, name: str, named: Named = as_given
) -> dict[str, Column]:
    """The values as columns, given ones as `named` has them, by the name of what they are assigned
    to. Raises `ValueError` for none, and `TypeError`."""
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
        found[column] = expression(value) if isinstance(value, str) else named(value)
    return found


def expression(text: str) -> Column:
    """A condition or value. It is read in parentheses, because Spark takes a name behind one that
    has none: `a = 1 AND` would be `a = 1`. DEFAULT is a word alone."""
    return F.expr(text if text.strip().upper() == _DEFAULT else f"({text}\n)")
