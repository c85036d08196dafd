"""Literals of Spark SQL and the names of its types."""

import re
from decimal import Decimal

from tidegate_protocol.base.text import excerpt
from tidegate_protocol.scan.predicate.errors import InvalidPredicate
from tidegate_protocol.scan.predicate.evaluation.coercion import MAX_PRECISION, limits
from tidegate_protocol.scan.predicate.evaluation.nodes import Scalar, constant
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
    DataType,
    DecimalType,
    InvalidSchema,
)
from tidegate_protocol.schema.values import to_float32

_NUMBER = re.compile(
    r"(?P<digits>[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)"
    r"(?P<exponent>[eE][+-]?[0-9]{1,6})?(?P<suffix>[A-Za-z]*)",
    re.ASCII,
)
_DIGITS_OF_INTEGER = 10
"""Numbers of fewer digits are of this type."""
_INTEGER_SUFFIXES = {"L": LONG, "S": SHORT, "Y": BYTE}
_DECIMAL_NAME = re.compile(
    r"(?:decimal|dec|numeric)(?:\s*\(\s*([0-9]{1,2})\s*(?:,\s*([0-9]{1,2})\s*)?\))?", re.ASCII
)
_TEXT_NAME = re.compile(r"string|(?:var)?char\s*\(\s*[0-9]+\s*\)", re.ASCII)
_TYPE_NAMES: dict[str, DataType] = {
    "bigint": LONG,
    "binary": BINARY,
    "boolean": BOOLEAN,
    "byte": BYTE,
    "date": DATE,
    "double": DOUBLE,
    "float": FLOAT,
    "int": INTEGER,
    "integer": INTEGER,
    "long": LONG,
    "real": FLOAT,
    "short": SHORT,
    "smallint": SHORT,
    "timestamp": TIMESTAMP,
    "timestamp_ltz": TIMESTAMP,
    "timestamp_ntz": TIMESTAMP_NTZ,
    "tinyint": BYTE,
}


def text(value: str) -> Scalar:
    return constant(STRING, value)


def binary(digits: str) -> Scalar:
    """`X'...'`; an odd number of digits begins with a zero, as in Spark."""
    return constant(BINARY, bytes.fromhex(digits if len(digits) % 2 == 0 else f"0{digits}"))


def number(source: str, *, negated: bool = False, position: int | None = None) -> Scalar:
    """A number as Spark reads it, with its sign, because that decides over range and type."""
    if len(source) < _DIGITS_OF_INTEGER and source.isascii() and source.isdigit():
        return _integer(INTEGER, -int(source) if negated else int(source))
    match = _NUMBER.fullmatch(source)
    if match is None:
        raise InvalidPredicate(f"{excerpt(source)} is not a number", position=position)
    suffix = match["suffix"].upper()
    plain = match["digits"] + (match["exponent"] or "")
    signed = f"-{plain}" if negated else plain
    has_point = "." in match["digits"]
    if suffix in ("D", "F") or (not suffix and match["exponent"]):
        value = float(signed)
        if value in (float("inf"), float("-inf")):
            raise _beyond(source, position)
        return constant(FLOAT, to_float32(value)) if suffix == "F" else constant(DOUBLE, value)
    if suffix in _INTEGER_SUFFIXES and not has_point and not match["exponent"]:
        type_ = _INTEGER_SUFFIXES[suffix]
        if not _fits(signed, type_):
            raise _beyond(source, position)
        return _integer(type_, int(signed))
    if suffix not in ("", "BD"):
        raise InvalidPredicate(f"{excerpt(source)} is not a number", position=position)
    if not suffix and not has_point:
        for type_ in (INTEGER, LONG):
            if _fits(signed, type_):
                return _integer(type_, int(signed))
    return _decimal(source, signed, position)


def type_named(name: str) -> DataType | None:
    """The primitive type of this name in SQL; None for another type."""
    lower = " ".join(name.lower().split())
    match = _DECIMAL_NAME.fullmatch(lower)
    if match is not None:
        try:
            return DecimalType(int(match[1] or 10), int(match[2] or 0))
        except InvalidSchema:
            return None
    if _TEXT_NAME.fullmatch(lower):
        return STRING
    return _TYPE_NAMES.get(lower)


def _integer(type_: DataType, value: int) -> Scalar:
    return Scalar(type=type_, run=lambda _: value, is_integer_literal=True)


def _fits(signed: str, type_: DataType) -> bool:
    low, high = limits(type_)
    return len(signed) <= MAX_PRECISION and low <= int(signed) <= high


def _decimal(source: str, signed: str, position: int | None) -> Scalar:
    """A decimal of just as many digits as are written."""
    value = Decimal(signed)
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale, 1)
    if precision > MAX_PRECISION:
        raise _beyond(source, position)
    return constant(DecimalType(precision, scale), value)


def _beyond(source: str, position: int | None) -> InvalidPredicate:
    return InvalidPredicate(f"{excerpt(source)} is beyond the range of its type", position=position)
