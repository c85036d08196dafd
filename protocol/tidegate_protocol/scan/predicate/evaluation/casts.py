"""CAST and TRY_CAST between the primitive types, as Spark converts in either mode.

Without ANSI mode some conversions that fail here give null or a wrapped number instead; a
failure is therefore unknown, except in TRY_CAST, where it is null in both modes.
"""

import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from math import isfinite, isnan

from tidegate_protocol.scan.predicate.evaluation import datetimes
from tidegate_protocol.scan.predicate.evaluation.coercion import (
    FRACTIONAL,
    INTEGRAL,
    decimal_for,
    limits,
)
from tidegate_protocol.scan.predicate.evaluation.nodes import Row, Scalar, constant, scalar
from tidegate_protocol.scan.predicate.evaluation.outcomes import FAILED, Failed
from tidegate_protocol.scan.predicate.evaluation.values import UNKNOWN, Plain, Range, Value
from tidegate_protocol.schema.data_types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    DataType,
    DecimalType,
)
from tidegate_protocol.schema.values import parse_double, to_float32

Converted = Plain | Range | Failed
Conversion = Callable[..., Converted]
"""From a known value of one type to one of another; only ever given what its type holds."""

_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]{1,6})?")
_SPECIAL = frozenset({"inf", "+inf", "-inf", "infinity", "+infinity", "-infinity", "nan"})
_TRUE_TEXTS = frozenset({"t", "true", "y", "yes", "1"})
_FALSE_TEXTS = frozenset({"f", "false", "n", "no", "0"})
_WIDE = Context(prec=100)
_EXACT_IN_DOUBLE = 1 << 53
_MAX_DIGITS = 100
_TIMESTAMPS = (TIMESTAMP, TIMESTAMP_NTZ)
_TEXTUAL = (STRING, VOID, BOOLEAN, DATE, *INTEGRAL, *_TIMESTAMPS)
_COUNTS = (BYTE, SHORT, INTEGER, VOID)


def cast(operand: Scalar, to: DataType, *, or_null: bool = False) -> Scalar:
    """The operand as a value of a primitive type; `or_null` for TRY_CAST."""
    if operand.type == to:
        return operand
    if operand.type == VOID:
        return constant(to, None)
    convert = None if operand.type is None else _conversion(operand.type, to)
    if convert is None or operand.type is None:
        return scalar(to, lambda _: UNKNOWN, operand)
    value_of = operand.run
    keeps_order = _keeps_order(operand.type, to)

    def run(row: Row) -> Value:
        value = value_of(row)
        if value is None:
            return None
        if isinstance(value, Range):
            return _convert_range(value, convert) if keeps_order else UNKNOWN
        converted = convert(value)
        if isinstance(converted, Failed):
            return None if or_null else UNKNOWN
        return converted

    return scalar(to, run, operand)


def as_text(operand: Scalar) -> Scalar | None:
    """The operand as text, to which Spark casts the arguments of its functions of text; None for
    one that is not cast."""
    castable = operand.type in _TEXTUAL or isinstance(operand.type, DecimalType)
    return cast(operand, STRING) if castable else None


def as_count(operand: Scalar) -> Scalar | None:
    """The operand as a number of characters, days, ...; None for one of another type."""
    return cast(operand, INTEGER) if operand.type in _COUNTS else None


def round_decimal(value: Decimal, type_: DecimalType) -> Decimal | Failed:
    """The value with the type's digits after the point, half up; failed where it does not fit."""
    try:
        rounded = value.quantize(Decimal(1).scaleb(-type_.scale), ROUND_HALF_UP, _WIDE)
    except InvalidOperation:
        return FAILED
    whole = type_.precision - type_.scale
    return rounded if abs(rounded) < Decimal(10) ** whole else FAILED


def check_integer(value: int, type_: DataType) -> int | Failed:
    """The value where the integral type can hold it."""
    low, high = limits(type_)
    return value if low <= value <= high else FAILED


def _convert_range(value: Range, convert: Conversion) -> Range:
    low = None if value.low is None else convert(value.low)
    high = None if value.high is None else convert(value.high)
    if isinstance(low, Range | Failed) or isinstance(high, Range | Failed):
        return UNKNOWN
    return Range(low, high, value.nullable)


def _keeps_order(from_: DataType, to: DataType) -> bool:
    """Whether the conversion is total and never turns the order of two values around."""
    if from_ in INTEGRAL:
        if to in INTEGRAL:
            return INTEGRAL.index(to) > INTEGRAL.index(from_)
        if isinstance(to, DecimalType):
            return to.precision - to.scale >= decimal_for(from_).precision
        return to == DOUBLE
    if isinstance(from_, DecimalType):
        if isinstance(to, DecimalType):
            return to.precision - to.scale > from_.precision - from_.scale or (
                to.precision - to.scale == from_.precision - from_.scale and to.scale >= from_.scale
            )
        return to == DOUBLE
    if from_ == FLOAT:
        return to == DOUBLE
    if from_ in _TIMESTAMPS:
        return to in (*_TIMESTAMPS, DATE)
    return from_ == DATE and to in _TIMESTAMPS


def _conversion(from_: DataType, to: DataType) -> Conversion | None:
    if from_ == STRING:
        return _from_text(to)
    if from_ in INTEGRAL or from_ == BOOLEAN:
        return _from_integer(from_, to)
    if from_ in FRACTIONAL:
        return _from_float(to)
    if isinstance(from_, DecimalType):
        return _from_decimal(from_, to)
    if from_ == DATE:
        table: dict[DataType, Conversion] = {
            STRING: datetimes.date_text,
            TIMESTAMP: _midnight,
            TIMESTAMP_NTZ: _midnight,
        }
        return table.get(to)
    if from_ in _TIMESTAMPS:
        return _from_timestamp(from_, to)
    if from_ == BINARY and to == STRING:
        return _decode
    return None


def _from_text(to: DataType) -> Conversion | None:
    if to in INTEGRAL:
        return lambda text: _integer_of_text(text, to)
    if isinstance(to, DecimalType):
        return lambda text: _decimal_of_text(text, to)
    table: dict[DataType, Conversion] = {
        DOUBLE: _double_of_text,
        FLOAT: _float_of_text,
        BOOLEAN: _boolean_of_text,
        DATE: datetimes.date_of_text,
        TIMESTAMP: lambda text: datetimes.timestamp_of_text(text, local=False),
        TIMESTAMP_NTZ: lambda text: datetimes.timestamp_of_text(text, local=True),
        BINARY: lambda text: text.encode("utf-8", "surrogatepass"),
    }
    return table.get(to)


def _from_integer(from_: DataType, to: DataType) -> Conversion | None:
    if to in INTEGRAL:
        return lambda value: check_integer(int(value), to)
    if isinstance(to, DecimalType):
        return lambda value: round_decimal(Decimal(int(value)), to)
    if to == STRING:
        return (lambda value: str(value).lower()) if from_ == BOOLEAN else str
    if to == TIMESTAMP and from_ != BOOLEAN:
        return _timestamp_of_seconds
    table: dict[DataType, Conversion] = {DOUBLE: float, FLOAT: _float_of_integer, BOOLEAN: bool}
    return table.get(to)


def _from_float(to: DataType) -> Conversion | None:
    if to in INTEGRAL:
        return lambda value: _truncate(value, to)
    if isinstance(to, DecimalType):
        return lambda value: _decimal_of_float(value, to)
    table: dict[DataType, Conversion] = {DOUBLE: float, FLOAT: to_float32, BOOLEAN: bool}
    return table.get(to)


def _from_decimal(from_: DecimalType, to: DataType) -> Conversion | None:
    if to in INTEGRAL:
        return lambda value: check_integer(int(value), to)
    if isinstance(to, DecimalType):
        return lambda value: round_decimal(value, to)
    table: dict[DataType, Conversion] = {
        DOUBLE: float,
        FLOAT: lambda value: _narrow(float(value), exact=Decimal(float(value)) == value),
        BOOLEAN: bool,
        STRING: lambda value: _text_of_decimal(value, from_.scale),
    }
    return table.get(to)


def _from_timestamp(from_: DataType, to: DataType) -> Conversion | None:
    if to == DATE:
        return lambda micros: micros // datetimes.MICROS_PER_DAY
    if to in _TIMESTAMPS:
        return int
    if to == STRING:
        return datetimes.timestamp_text
    if to in INTEGRAL and from_ == TIMESTAMP:
        return lambda micros: check_integer(micros // datetimes.MICROS_PER_SECOND, to)
    return None


def _timestamp_of_seconds(seconds: int) -> int | Range:
    """Beyond the years of a calendar, Spark takes the last instant it knows."""
    micros = seconds * datetimes.MICROS_PER_SECOND
    return micros if datetimes.to_datetime(micros) is not None else UNKNOWN


def _midnight(days: int) -> int:
    return days * datetimes.MICROS_PER_DAY


def _decode(value: bytes) -> str | Range:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return UNKNOWN


def _integer_of_text(text: str, to: DataType) -> Converted:
    """Digits only: a fraction is an error in one mode and cut off in the other."""
    digits = text.strip(datetimes.TRIMMED)
    if _INTEGER.fullmatch(digits) is None:
        return FAILED
    return check_integer(int(digits), to) if len(digits) <= _MAX_DIGITS else UNKNOWN


def _double_of_text(text: str) -> Converted:
    digits = text.strip(datetimes.TRIMMED)
    if _NUMBER.fullmatch(digits) is not None:
        return float(digits)
    if digits.lower() in _SPECIAL:
        return parse_double(digits)
    # Java reads more than Spark documents: "1d", "0x1p3".
    return UNKNOWN if re.search(r"[A-Za-z0-9]", digits) else FAILED


def _float_of_text(text: str) -> Converted:
    value = _double_of_text(text)
    return _narrow(value, exact=False) if isinstance(value, float) else value


def _decimal_of_text(text: str, to: DecimalType) -> Converted:
    digits = text.strip(datetimes.TRIMMED)
    if _NUMBER.fullmatch(digits) is not None:
        return round_decimal(Decimal(digits), to)
    # Java's BigDecimal reads digits of other scripts, too.
    return FAILED if digits.isascii() else UNKNOWN


def _boolean_of_text(text: str) -> bool | Failed:
    word = text.strip(datetimes.TRIMMED).lower()
    if word in _TRUE_TEXTS:
        return True
    return False if word in _FALSE_TEXTS else FAILED


def _float_of_integer(value: int) -> float | Range:
    return to_float32(float(value)) if abs(int(value)) <= _EXACT_IN_DOUBLE else UNKNOWN


def _narrow(value: float, *, exact: bool) -> float | Range:
    """An 8-byte number as a 4-byte one. One that was itself rounded must not be halfway between
    two of those, or rounding twice may differ from rounding once."""
    if exact or not isfinite(value):
        return to_float32(value)
    mantissa = int(value.hex().split("p")[0].rpartition(".")[2], 16) if value else 0
    return UNKNOWN if mantissa & 0x1FFFFFFF == 0x10000000 else to_float32(value)


def _truncate(value: float, to: DataType) -> Converted:
    low, high = limits(to)
    if value in (low - 1, high + 1):
        # Java's comparison with the limit rounds for some types.
        return UNKNOWN
    if isnan(value) or not low - 1 < value < high + 1:
        return FAILED
    return check_integer(int(value), to)


def _decimal_of_float(value: float, to: DecimalType) -> Converted:
    """Whole numbers only: the digits that Java prints of others depend on its version."""
    if isnan(value) or abs(value) > _EXACT_IN_DOUBLE or value != int(value):
        return UNKNOWN
    return round_decimal(Decimal(int(value)), to)


def _text_of_decimal(value: Decimal, scale: int) -> str | Range:
    """As many digits after the point as the type has; Java writes some numbers near zero with an
    exponent, but not in ANSI mode."""
    text = f"{value:.{scale}f}"
    return UNKNOWN if scale > 6 and abs(value) < 1 else text
