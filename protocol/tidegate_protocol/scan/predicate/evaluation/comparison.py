"""Comparisons and IN, over known values and ranges."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import cmp_to_key
from typing import Any, TypeGuard

from tidegate_protocol.scan.predicate.evaluation.casts import cast
from tidegate_protocol.scan.predicate.evaluation.coercion import (
    INTEGRAL,
    common,
    for_comparison,
    limits,
)
from tidegate_protocol.scan.predicate.evaluation.nodes import (
    Condition,
    Node,
    Row,
    Scalar,
    alternative,
    anything,
    condition,
    conjunction,
    either,
    known,
    once,
    to_scalar,
)
from tidegate_protocol.scan.predicate.evaluation.values import (
    ANY,
    FALSE,
    NULL,
    TRUE,
    Plain,
    Range,
    Truth,
    Value,
    bounds,
    is_nan,
    less,
    nullable,
    same,
)
from tidegate_protocol.schema.data_types import LONG, VARIANT, DataType, DecimalType, PrimitiveType

_BELOW, _SAME, _ABOVE = 1, 2, 4

COMPARISONS: dict[str, int] = {
    "=": _SAME,
    "<>": _BELOW | _ABOVE,
    "<": _BELOW,
    "<=": _BELOW | _SAME,
    ">": _ABOVE,
    ">=": _ABOVE | _SAME,
}
"""Which orders of its operands make a comparison true."""

Relation = Callable[[Value, Value], Truth]


def compare(symbol: str, left: Node, right: Node) -> Condition:
    """One of `COMPARISONS`, null where an operand is."""
    left, right = to_scalar(left), to_scalar(right)
    relation = _comparing(COMPARISONS[symbol])
    if symbol in ("=", "<>"):
        return _compared(left, right, relation)
    if _is_beyond_integers(right) and left.type in INTEGRAL:
        relation = _deciding_nulls(relation, relation(0, known(right)))
    elif _is_beyond_integers(left) and right.type in INTEGRAL:
        relation = _deciding_nulls(relation, relation(known(left), 0))
    return _compared(left, right, relation)


def equal_or_both_null(left: Node, right: Node) -> Condition:
    """`<=>`, never null."""
    return _compared(left, right, _null_safe)


def between(value: Node, low: Node, high: Node) -> Condition:
    """`value BETWEEN low AND high`, which Spark takes for the conjunction that it means."""
    value = once(to_scalar(value))
    return conjunction([compare(">=", value, low), compare("<=", value, high)])


def is_null(operand: Node) -> Condition:
    run = to_scalar(operand).run

    def truth(row: Row) -> Truth:
        value = run(row)
        if value is None:
            return TRUE
        return TRUE | FALSE if nullable(value) else FALSE

    return condition(truth, operand)


def is_truth(operand: Condition, wanted: Truth) -> Condition:
    """`IS TRUE`, `IS FALSE`, `IS UNKNOWN`: never null."""
    run = operand.run

    def truth(row: Row) -> Truth:
        outcomes = run(row)
        return (TRUE if outcomes & wanted else 0) | (FALSE if outcomes & ~wanted & ANY else 0)

    return condition(truth, operand)


def one_of(value: Node, choices: Sequence[Node]) -> Condition:
    """`value IN (choices)`, all brought to one type."""
    operands = [to_scalar(value), *map(to_scalar, choices)]
    types = [operand.type for operand in operands]
    comparable = [type_ for type_ in types if _is_comparable(type_)]
    readings = common(comparable) if len(comparable) == len(types) else ()
    if not readings:
        return anything(operands)
    if len(readings) > 1:
        operands = [*map(once, operands)]
    found = [_one_of_type(operands, type_) for type_ in readings]
    return found[0] if len(found) == 1 else either(*found)


def _one_of_type(operands: Sequence[Scalar], type_: DataType) -> Condition:
    value, *choices = (cast(operand, type_) for operand in operands)
    constants = [known(choice) for choice in choices if not choice.columns and not choice.foreign]
    if len(constants) == len(choices):
        return condition(_in_constants(value.run, constants), value)
    value = once(value)
    # A list may be long, and what it holds of constants costs the same however many they are.
    parts = [condition(_in_constants(value.run, constants), value)] if constants else []
    parts += [
        condition(_applied(_comparing(_SAME), value.run, choice.run), value, choice)
        for choice in choices
        if choice.columns or choice.foreign
    ]
    return _plain(alternative(parts))


def _plain(node: Condition) -> Condition:
    """The condition as one predicate: Delta does not look into IN as it does into OR."""
    return condition(node.run, node)


def _in_constants(run: Callable[[Row], Value], choices: Sequence[Value]) -> Callable[[Row], Truth]:
    plain = [choice for choice in choices if choice is not None and not isinstance(choice, Range)]
    nans = [choice for choice in plain if is_nan(choice)]
    has_nan = bool(nans)
    members = frozenset(choice for choice in plain if not is_nan(choice))
    ordered: list[Any] = list(members)
    ordered.sort()
    # Above every number.
    ordered += nans[:1]
    otherwise: Truth = NULL if None in choices else FALSE
    if any(isinstance(choice, Range) for choice in choices):
        otherwise |= ANY

    def truth(row: Row) -> Truth:
        value = run(row)
        if value is None:
            return NULL
        null = NULL if nullable(value) else 0
        low, high = bounds(value)
        if low is not None and high is not None and same(low, high):
            found = has_nan if is_nan(low) else low in members
            return (TRUE if found else otherwise) | null
        assert isinstance(value, Range)
        outcomes = otherwise | null
        if _reaches(value, ordered):
            outcomes |= TRUE
        return outcomes

    return truth


def _reaches(value: Range, ordered: Sequence[Plain]) -> bool:
    """Whether one of the choices lies in the range."""
    first = 0
    if value.low is not None:
        key = cmp_to_key(_order)
        first = bisect_left(ordered, key(value.low), key=key)
    if first == len(ordered):
        return False
    return value.high is None or not less(value.high, ordered[first])


def _order(left: Plain, right: Plain) -> int:
    return less(right, left) - less(left, right)


def _compared(left: Node, right: Node, relation: Relation) -> Condition:
    left, right = to_scalar(left), to_scalar(right)
    readings: tuple[DataType, ...] = ()
    if _is_comparable(left.type) and _is_comparable(right.type):
        readings = for_comparison(left.type, right.type)
    if not readings:
        return anything([left, right])
    if len(readings) > 1:
        left, right = once(left), once(right)
    found = []
    for type_ in readings:
        one, other = cast(left, type_), cast(right, type_)
        found.append(condition(_applied(relation, one.run, other.run), one, other))
    return found[0] if len(found) == 1 else either(*found)


def _is_comparable(type_: DataType | None) -> TypeGuard[DataType]:
    return isinstance(type_, PrimitiveType | DecimalType) and type_ != VARIANT


def _applied(
    relation: Relation, left: Callable[[Row], Value], right: Callable[[Row], Value]
) -> Callable[[Row], Truth]:
    return lambda row: relation(left(row), right(row))


def _comparing(wanted: int) -> Relation:
    def relation(left: Value, right: Value) -> Truth:
        if left is None or right is None:
            return NULL
        if isinstance(left, Range) or isinstance(right, Range):
            orders = _orders(left, right)
            return (
                (TRUE if orders & wanted else 0)
                | (FALSE if orders & ~wanted else 0)
                | (NULL if nullable(left) or nullable(right) else 0)
            )
        order = _SAME if same(left, right) else _BELOW if less(left, right) else _ABOVE
        return TRUE if order & wanted else FALSE

    return relation


def _is_beyond_integers(node: Scalar) -> bool:
    """Whether the node is a decimal constant that no integer reaches."""
    if not isinstance(node.type, DecimalType) or node.columns or node.foreign:
        return False
    value = known(node)
    low, high = limits(LONG)
    return isinstance(value, Decimal) and not low <= value <= high


def _deciding_nulls(relation: Relation, decided: Truth) -> Relation:
    """Spark decides the comparison of an integer with a constant that no integer reaches from
    the constant alone, also for null."""

    def deciding(left: Value, right: Value) -> Truth:
        truth = relation(left, right)
        return truth | decided if truth & NULL else truth

    return deciding


def _null_safe(left: Value, right: Value) -> Truth:
    if left is None or right is None:
        other = right if left is None else left
        if other is None:
            return TRUE
        return TRUE | FALSE if nullable(other) else FALSE
    if not isinstance(left, Range) and not isinstance(right, Range):
        return TRUE if same(left, right) else FALSE
    orders = _orders(left, right)
    both_null = nullable(left) and nullable(right)
    one_null = nullable(left) or nullable(right)
    return (TRUE if orders & _SAME or both_null else 0) | (
        FALSE if orders & ~_SAME or one_null else 0
    )


def _orders(left: Plain | Range, right: Plain | Range) -> int:
    """How the operands may lie to each other, where neither is null."""
    left_low, left_high = bounds(left)
    right_low, right_high = bounds(right)
    below = _SAME if left_high is None or right_low is None else _place(left_high, right_low)
    above = _SAME if right_high is None or left_low is None else _place(right_high, left_low)
    orders = 0
    if _BELOW not in (below, above):
        orders |= _SAME
    if left_low is None or right_high is None or less(left_low, right_high):
        orders |= _BELOW
    if right_low is None or left_high is None or less(right_low, left_high):
        orders |= _ABOVE
    return orders


def _place(left: Plain, right: Plain) -> int:
    return _BELOW if less(left, right) else _SAME
