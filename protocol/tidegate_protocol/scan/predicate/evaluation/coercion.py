"""The types in which Spark brings operands together.

Spark has two sets of rules, one for ANSI mode (its default since 4.0) and one without, and a
predicate does not say under which its writer ran. Where the two differ, both types are named,
and the predicate holds wherever it holds under either.
"""

from collections.abc import Callable, Sequence

from tidegate_protocol.schema.data_types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    DataType,
    DecimalType,
)

INTEGRAL = (BYTE, SHORT, INTEGER, LONG)
"""Narrowest first."""

FRACTIONAL = (FLOAT, DOUBLE)
_DATETIMES = (DATE, TIMESTAMP_NTZ, TIMESTAMP)
_BITS: dict[DataType, int] = {BYTE: 8, SHORT: 16, INTEGER: 32, LONG: 64}
_DECIMALS: dict[DataType, DecimalType] = {
    BYTE: DecimalType(3, 0),
    SHORT: DecimalType(5, 0),
    INTEGER: DecimalType(10, 0),
    LONG: DecimalType(20, 0),
}
MAX_PRECISION = 38
_MIN_ADJUSTED_SCALE = 6

Rule = Callable[[DataType, DataType], DataType | None]


def is_numeric(type_: DataType | None) -> bool:
    return type_ in INTEGRAL or type_ in FRACTIONAL or isinstance(type_, DecimalType)


def limits(type_: DataType) -> tuple[int, int]:
    """Smallest and largest value of an integral type."""
    half = 1 << (_BITS[type_] - 1)
    return -half, half - 1


def decimal_for(type_: DataType) -> DecimalType:
    """The decimal that an integral type becomes when it meets one."""
    return type_ if isinstance(type_, DecimalType) else _DECIMALS[type_]


def wider_decimal(left: DecimalType, right: DecimalType) -> DecimalType:
    """For comparing; where 38 digits are too few, digits after the point are given up."""
    scale = max(left.scale, right.scale)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    if whole + scale <= MAX_PRECISION:
        return DecimalType(whole + scale, scale)
    return DecimalType(MAX_PRECISION, max(0, MAX_PRECISION - whole))


def bounded_decimal(precision: int, scale: int) -> DecimalType:
    """The type of a result of arithmetic: digits after the point are given up, but not all."""
    if precision <= MAX_PRECISION:
        return DecimalType(precision, scale)
    least = min(scale, _MIN_ADJUSTED_SCALE)
    return DecimalType(MAX_PRECISION, max(MAX_PRECISION - (precision - scale), least))


def for_comparison(left: DataType, right: DataType) -> tuple[DataType, ...]:
    """The type or types that two operands of a comparison are cast to; none where Spark
    refuses the comparison."""
    if STRING in (left, right) and left != right:
        other = right if left == STRING else left
        return _distinct(_ansi(left, right), _text_as(other))
    return _distinct(_ansi(left, right), _legacy(left, right))


def common(types: Sequence[DataType]) -> tuple[DataType, ...]:
    """The type or types that the operands of IN, COALESCE, CASE, ... are cast to; none where
    Spark refuses them together."""
    # Strings first, as Spark does: what meets the rest is then the rest's type.
    ordered = sorted(types, key=lambda type_: type_ != STRING)
    return _distinct(_folded(_ansi, ordered), _folded(_legacy, ordered))


def _distinct(ansi: DataType | None, legacy: DataType | None) -> tuple[DataType, ...]:
    return tuple(dict.fromkeys(type_ for type_ in (ansi, legacy) if type_ is not None))


def _folded(rule: Rule, types: Sequence[DataType]) -> DataType | None:
    common: DataType | None = types[0]
    for type_ in types[1:]:
        common = None if common is None else rule(common, type_)
    return common


def _shared(left: DataType, right: DataType) -> DataType | None:
    """What both modes agree on."""
    if left == right:
        return left
    if VOID in (left, right):
        return right if left == VOID else left
    if left in INTEGRAL and right in INTEGRAL:
        return max(left, right, key=INTEGRAL.index)
    if left in _DATETIMES and right in _DATETIMES:
        return max(left, right, key=_DATETIMES.index)
    if is_numeric(left) and is_numeric(right):
        if DOUBLE in (left, right):
            return DOUBLE
        if FLOAT in (left, right):
            decimal = isinstance(left, DecimalType) or isinstance(right, DecimalType)
            return DOUBLE if decimal else None
        return wider_decimal(decimal_for(left), decimal_for(right))
    return None


def _ansi(left: DataType, right: DataType) -> DataType | None:
    shared = _shared(left, right)
    if shared is not None:
        return shared
    if is_numeric(left) and is_numeric(right):
        return DOUBLE
    if STRING in (left, right):
        other = right if left == STRING else left
        if other in INTEGRAL:
            return LONG
        if is_numeric(other):
            return DOUBLE
        return other if other in (*_DATETIMES, BOOLEAN, BINARY) else None
    return None


def _legacy(left: DataType, right: DataType) -> DataType | None:
    shared = _shared(left, right)
    if shared is not None:
        return shared
    if is_numeric(left) and is_numeric(right):
        return FLOAT
    if STRING in (left, right):
        other = right if left == STRING else left
        return STRING if is_numeric(other) or other in _DATETIMES else None
    return None


def _text_as(other: DataType) -> DataType | None:
    """Without ANSI mode, text is compared as what it is compared with."""
    return other if is_numeric(other) or other in (*_DATETIMES, BOOLEAN, BINARY) else None
