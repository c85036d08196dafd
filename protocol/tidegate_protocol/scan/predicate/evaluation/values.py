"""What is known of a value, and of a truth, when a whole file is evaluated at once.

A value is a plain Python one where it is known (dates are days and timestamps microseconds since
1970-01-01 UTC, so that none is out of range), None where it is null, and a `Range` where only
bounds are known. A truth is the set of outcomes that some row may have, of TRUE, FALSE and NULL:
evaluating with sets keeps what is uncertain uncertain, under every operator.
"""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import isnan

Plain = int | float | Decimal | bool | str | bytes
"""A known value that is not null."""


@dataclass(frozen=True, slots=True)
class Range:
    """Any value from `low` to `high`, both included, None where there is no bound; NaN is above
    all numbers, as in Spark. `nullable` says that it may be null, too."""

    low: Plain | None
    high: Plain | None
    nullable: bool


Value = Plain | Range | None

UNKNOWN = Range(None, None, nullable=True)
"""Nothing is known: any value, null, or an error that ends the query."""

Truth = int
TRUE: Truth = 1
FALSE: Truth = 2
NULL: Truth = 4
ANY: Truth = TRUE | FALSE | NULL

_OUTCOMES = (TRUE, FALSE, NULL)


def _conjunction(left: Truth, right: Truth) -> Truth:
    if FALSE in (left, right):
        return FALSE
    return NULL if NULL in (left, right) else TRUE


def _table(left: Truth) -> tuple[Truth, ...]:
    row = []
    for right in range(ANY + 1):
        outcomes = 0
        for a in _OUTCOMES:
            for b in _OUTCOMES:
                if left & a and right & b:
                    outcomes |= _conjunction(a, b)
        row.append(outcomes)
    return tuple(row)


NOT: tuple[Truth, ...] = tuple(
    truth & NULL | (FALSE if truth & TRUE else 0) | (TRUE if truth & FALSE else 0)
    for truth in range(ANY + 1)
)
"""The outcomes of NOT, by the operand's."""

AND: tuple[tuple[Truth, ...], ...] = tuple(_table(left) for left in range(ANY + 1))
"""The outcomes of AND, by the operands'."""


OR: tuple[tuple[Truth, ...], ...] = tuple(
    tuple(NOT[AND[NOT[left]][NOT[right]]] for right in range(ANY + 1)) for left in range(ANY + 1)
)
"""The outcomes of OR, by the operands'."""


_VALUES: tuple[Value, ...] = (
    UNKNOWN,  # no outcome at all: cannot be met
    True,
    False,
    Range(False, True, nullable=False),
    None,
    Range(True, True, nullable=True),
    Range(False, False, nullable=True),
    UNKNOWN,
)


def as_value(truth: Truth) -> Value:
    """A truth as a boolean value."""
    return _VALUES[truth]


def as_truth(value: Value) -> Truth:
    """A boolean value as a truth."""
    if value is None:
        return NULL
    if isinstance(value, Range):
        return (
            (NULL if value.nullable else 0)
            | (0 if value.high is False else TRUE)
            | (0 if value.low is True else FALSE)
        )
    return TRUE if value else FALSE


def less(left: Plain, right: Plain) -> bool:
    """Spark's order of two values of one type: strings by code point (which is the order of
    their UTF-8 bytes), bytes unsigned, NaN equal to itself and above every number."""
    return operator.lt(left, right) or (is_nan(right) and not is_nan(left))


def same(left: Plain, right: Plain) -> bool:
    """Spark's equality of two values of one type."""
    return left == right or (is_nan(left) and is_nan(right))


def is_nan(value: Plain) -> bool:
    return isinstance(value, float) and isnan(value)


def nullable(value: Value) -> bool:
    """Whether the value may be null."""
    return value is None or (isinstance(value, Range) and value.nullable)


def bounds(value: Plain | Range) -> tuple[Plain | None, Plain | None]:
    """Low and high of what the value may be when it is not null."""
    return (value.low, value.high) if isinstance(value, Range) else (value, value)


def hull(possible: Sequence[Value]) -> Value:
    """The narrowest value that covers all of these; at least one is given."""
    known = [value for value in possible if value is not None]
    if not known:
        return None
    may_be_null = any(nullable(value) for value in possible)
    low, high = bounds(known[0])
    for value in known[1:]:
        other_low, other_high = bounds(value)
        if low is not None:
            low = other_low if other_low is None or less(other_low, low) else low
        if high is not None:
            high = other_high if other_high is None or less(high, other_high) else high
    if low is not None and high is not None and low == high and not may_be_null:
        return low
    return Range(low, high, may_be_null)
