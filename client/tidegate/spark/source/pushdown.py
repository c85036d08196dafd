"""Spark's pushed filters as Spark SQL text, which is what the service prunes files by."""

from collections.abc import Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from math import isfinite

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from tidegate.spark.tables.predicates import LONGEST_UNRECORDED, joined

_COMPARISONS: dict[type[Filter], str] = {
    EqualTo: "=",
    EqualNullSafe: "<=>",
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
    LessThan: "<",
    LessThanOrEqual: "<=",
}
_COMPARED = (EqualTo, EqualNullSafe, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual)
_PATTERNS: dict[type[Filter], str] = {
    StringStartsWith: "{}%",
    StringEndsWith: "%{}",
    StringContains: "%{}%",
}


def conjunction(filters: Iterable[Filter]) -> str | None:
    """The filters that have a text, together, without those that would make it too long; None where
    none is left. The others only prune less: Spark looks at every row again."""
    texts = (text for text in map(_text, filters) if text is not None)
    return joined((f"({text})" for text in texts), longest=LONGEST_UNRECORDED)


def _text(filter_: Filter) -> str | None:
    match filter_:
        case Not(child):
            inner = _text(child)
            return None if inner is None else f"NOT ({inner})"
        case IsNull(attribute):
            return f"{_name(attribute)} IS NULL"
        case IsNotNull(attribute):
            return f"{_name(attribute)} IS NOT NULL"
        case In(attribute, values):
            literals = [_literal(value) for value in values]
            found = [literal for literal in literals if literal is not None]
            if not found or len(found) < len(literals):
                return None
            return f"{_name(attribute)} IN ({', '.join(found)})"
        case StringStartsWith() | StringEndsWith() | StringContains():
            escaped = "".join(f"\\{c}" if c in "\\%_" else c for c in filter_.value)
            pattern = _literal(_PATTERNS[type(filter_)].format(escaped))
            return f"{_name(filter_.attribute)} LIKE {pattern}"
    if isinstance(filter_, _COMPARED):
        literal = _literal(filter_.value)
        if literal is not None:
            return f"{_name(filter_.attribute)} {_COMPARISONS[type(filter_)]} {literal}"
    return None


def _name(path: tuple[str, ...]) -> str:
    return ".".join("`" + name.replace("`", "``") + "`" for name in path)


def _literal(value: object) -> str | None:
    """A literal that means the same in every session; None for a value that has none."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float() if isfinite(value):
            return f"CAST('{value!r}' AS DOUBLE)"
        case Decimal() if value.is_finite():
            return f"{value:f}BD"
        case datetime() if value.tzinfo is not None:
            return f"TIMESTAMP'{value.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}'"
        case datetime():
            return f"TIMESTAMP_NTZ'{value:%Y-%m-%dT%H:%M:%S.%f}'"
        case date():
            return f"DATE'{value.isoformat()}'"
        # The service refuses the first, and the second may stand for bytes that are no UTF-8.
        case str() if "\0" not in value and "\ufffd" not in value:
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return None
