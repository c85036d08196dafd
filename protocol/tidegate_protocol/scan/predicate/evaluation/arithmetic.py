"""Arithmetic as Spark types it: overflow and division by zero are unknown."""

import math
import operator
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal

from tidegate_protocol.scan.predicate.evaluation import datetimes
from tidegate_protocol.scan.predicate.evaluation.casts import cast, check_integer, round_decimal
from tidegate_protocol.scan.predicate.evaluation.coercion import (
    INTEGRAL,
    bounded_decimal,
    common,
    decimal_for,
    is_numeric,
)
from tidegate_protocol.scan.predicate.evaluation.nodes import (
    Row,
    Scalar,
    known,
    scalar,
    undecided,
)
from tidegate_protocol.scan.predicate.evaluation.outcomes import Failed
from tidegate_protocol.scan.predicate.evaluation.values import UNKNOWN, Plain, Range, Value
from tidegate_protocol.schema.data_types import (
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    VOID,
    DataType,
    DecimalType,
)
from tidegate_protocol.schema.values import to_float32

Computed = Plain | Range | Failed

_WIDE = Context(prec=200, rounding=ROUND_HALF_UP)
_QUOTIENT_DIGITS = Decimal(1).scaleb(-39)
_DAYS = (INTEGER, SHORT, BYTE)


def binary(symbol: str, left: Scalar, right: Scalar) -> Scalar:
    """`+`, `-`, `*`, `/`, `%` or `DIV` of two operands."""
    if symbol in "+-" and left.type == DATE and right.type in _DAYS:
        return add_days(left, right, sign=1 if symbol == "+" else -1)
    if symbol == "+" and right.type == DATE and left.type in _DAYS:
        return add_days(right, left, sign=1)
    if symbol == "+" and not left.columns:
        # What a range is added to comes first.
        left, right = right, left
    if not _is_operand(left) or not _is_operand(right):
        return undecided([left, right])
    if isinstance(left.type, DecimalType) != isinstance(right.type, DecimalType):
        left, right = _as_decimal(left, right), _as_decimal(right, left)
    if isinstance(left.type, DecimalType) and isinstance(right.type, DecimalType):
        return _of_decimals(symbol, left, right, left.type, right.type)
    return _of_numbers(symbol, left, right)


def negative(operand: Scalar) -> Scalar:
    """Unary minus."""
    type_ = operand.type
    if not is_numeric(type_) or type_ is None:
        return undecided([operand])
    if type_ in INTEGRAL:
        return apply(type_, lambda value: check_integer(-int(value), type_), operand)
    return apply(type_, operator.neg, operand)


def add_days(day: Scalar, count: Scalar, *, sign: int) -> Scalar:
    """A date so many days later (`sign` 1) or earlier (-1)."""

    def moved(days: int, number: int) -> Computed:
        # Out of the years of a calendar, where the sum could still be a number of days.
        result = days + sign * number
        return UNKNOWN if datetimes.to_date(result) is None else result

    return apply(DATE, moved, day, count, rising=True)


def apply(
    type_: DataType,
    compute: Callable[..., Computed],
    *operands: Scalar,
    rising: bool = False,
) -> Scalar:
    """A function that is null where an operand is. `rising` says that it keeps the order of its
    first operand whatever the others are, so that it may be applied to the ends of a range."""
    runs = [operand.run for operand in operands]

    def run(row: Row) -> Value:
        values = [run_one(row) for run_one in runs]
        if None in values:
            return None
        if any(isinstance(value, Range) for value in values):
            return _of_range(compute, values) if rising else UNKNOWN
        result = compute(*values)
        return UNKNOWN if isinstance(result, Failed) else result

    return scalar(type_, run, *operands)


def _of_range(compute: Callable[..., Computed], values: list[Value]) -> Value:
    first, *others = values
    if not isinstance(first, Range) or any(isinstance(value, Range) for value in others):
        return UNKNOWN
    if first.low is None or first.high is None:
        # What overflows may come back as null or at the other end.
        return UNKNOWN
    low, high = compute(first.low, *others), compute(first.high, *others)
    if isinstance(low, Range | Failed) or isinstance(high, Range | Failed):
        return UNKNOWN
    return Range(low, high, first.nullable)


def _is_operand(node: Scalar) -> bool:
    return is_numeric(node.type) or node.type == VOID


def _as_decimal(operand: Scalar, other: Scalar) -> Scalar:
    """An integer that meets a decimal becomes one; a number with a floating point stays."""
    if operand.type not in INTEGRAL or not isinstance(other.type, DecimalType):
        return operand
    if operand.is_integer_literal:
        value = known(operand)
        digits = len(str(abs(value))) if isinstance(value, int) else 1
        return cast(operand, DecimalType(digits, 0))
    return cast(operand, decimal_for(operand.type))


def _of_numbers(symbol: str, left: Scalar, right: Scalar) -> Scalar:
    if left.type is None or right.type is None:
        return undecided([left, right])
    if symbol == "/":
        type_: DataType = DOUBLE
    else:
        readings = common([left.type, right.type])
        if len(readings) != 1 or readings == (VOID,):
            return undecided([left, right])
        type_ = readings[0]
    left, right = cast(left, type_), cast(right, type_)
    if type_ in INTEGRAL:
        return _of_integers(symbol, left, right, type_)
    if symbol == "DIV":
        return undecided([left, right])
    compute = _FLOATS[symbol]
    if type_ == FLOAT:
        return apply(FLOAT, lambda a, b: _rounded(compute(a, b)), left, right)
    return apply(DOUBLE, compute, left, right)


def _of_integers(symbol: str, left: Scalar, right: Scalar, type_: DataType) -> Scalar:
    compute = _INTEGERS[symbol]
    result = LONG if symbol == "DIV" else type_

    def checked(a: int, b: int) -> Computed:
        value = compute(a, b)
        return value if isinstance(value, Range) else check_integer(value, result)

    return apply(result, checked, left, right, rising=symbol in "+-")


def _of_decimals(
    symbol: str, left: Scalar, right: Scalar, one: DecimalType, other: DecimalType
) -> Scalar:
    scale = max(one.scale, other.scale)
    whole = max(one.precision - one.scale, other.precision - other.scale)
    match symbol:
        case "+" | "-":
            type_ = bounded_decimal(whole + scale + 1, scale)
        case "*":
            type_ = bounded_decimal(one.precision + other.precision + 1, one.scale + other.scale)
        case "/":
            digits = max(6, one.scale + other.precision + 1)
            type_ = bounded_decimal(one.precision - one.scale + other.scale + digits, digits)
        case "%":
            least = min(one.precision - one.scale, other.precision - other.scale)
            type_ = bounded_decimal(least + scale, scale)
        case _:
            return apply(LONG, _divide_whole, left, right)
    compute = _DECIMALS[symbol]

    def checked(a: Decimal, b: Decimal) -> Computed:
        value = compute(a, b)
        return value if isinstance(value, Range) else round_decimal(value, type_)

    return apply(type_, checked, left, right, rising=symbol in "+-")


def _rounded(value: float | Range) -> float | Range:
    return value if isinstance(value, Range) else to_float32(value)


def _modulo(left: int, right: int) -> int | Range:
    """The sign is the left operand's."""
    return int(math.copysign(1, left)) * (abs(left) % abs(right)) if right else UNKNOWN


def _quotient(left: int, right: int) -> int | Range:
    """Rounded towards zero."""
    if not right:
        return UNKNOWN
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _divide(left: float, right: float) -> float | Range:
    return left / right if right else UNKNOWN


def _float_modulo(left: float, right: float) -> float | Range:
    if not right or not math.isfinite(left) or math.isnan(right):
        return UNKNOWN
    return math.fmod(left, right)


def _decimal_divide(left: Decimal, right: Decimal) -> Decimal | Range:
    if not right:
        return UNKNOWN
    # Spark rounds to these first, and to the type's digits then.
    return _WIDE.divide(left, right).quantize(_QUOTIENT_DIGITS, context=_WIDE)


def _decimal_modulo(left: Decimal, right: Decimal) -> Decimal | Range:
    return _WIDE.remainder(left, right) if right else UNKNOWN


def _divide_whole(left: Decimal, right: Decimal) -> Computed:
    if not right:
        return UNKNOWN
    return check_integer(int(_WIDE.divide_int(left, right)), LONG)


_INTEGERS: dict[str, Callable[[int, int], int | Range]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "%": _modulo,
    "DIV": _quotient,
}
_FLOATS: dict[str, Callable[[float, float], float | Range]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide,
    "%": _float_modulo,
}
_DECIMALS: dict[str, Callable[[Decimal, Decimal], Decimal | Range]] = {
    "+": _WIDE.add,
    "-": _WIDE.subtract,
    "*": _WIDE.multiply,
    "/": _decimal_divide,
    "%": _decimal_modulo,
}
