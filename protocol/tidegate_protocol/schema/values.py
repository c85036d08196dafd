"""Typed values of the primitive types and how text spells them.

Values are Python's: int, float, Decimal, bool, str, bytes, date, and datetime, UTC-aware for
timestamp and naive for timestamp_ntz. Parsing is strict: a text that two engines could read as
different values is no value, and a caller that only prunes takes it as "cannot be known".
"""

import re
import struct
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal

from tidegate_protocol.base.text import excerpt
from tidegate_protocol.schema.data_types import DecimalType, type_name

Value = int | float | Decimal | bool | str | bytes | date | datetime
"""A value of a primitive type; one of the type `float` is the nearest 4-byte number."""

INTEGER_LIMITS = {"byte": 2**7, "short": 2**15, "integer": 2**31, "long": 2**63}
"""One above the largest value of each integer type."""

WIDEST_OFFSET = timedelta(hours=18)
"""The most that a zone is from UTC, either way: Java's limit, which all engines on it share."""

_MAX_NUMBER_LENGTH = 100
_INTEGER = re.compile(r"[+-]?[0-9]{1,38}")
# One way to read each digit: with two, a long number with a wrong end takes its length squared.
_NUMBER = re.compile(r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]{1,4})?")
_DATE = re.compile(r"([+-]?[0-9]{4,7})-([0-9]{1,2})-([0-9]{1,2})")
_TIMESTAMP = re.compile(
    _DATE.pattern
    # Digits below the microsecond are cut by one engine and rounded by the next.
    + r"(?:[ T]([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6})0{0,3})?)?"
    + r" ?(Z|UTC|[+-][0-9]{2}:?[0-9]{2})?)?"
)
_SPECIAL_FLOATS = {
    "nan": float("nan"),
    "inf": float("inf"),
    "+inf": float("inf"),
    "-inf": float("-inf"),
    "infinity": float("inf"),
    "+infinity": float("inf"),
    "-infinity": float("-inf"),
}


class InvalidValue(ValueError):
    """The text is no value of the type, or the value has no text; the message says why."""


class UnrepresentableValue(InvalidValue):
    """The text is a value of the type that Python cannot hold (a year outside 1..9999)."""


def parse_integer(type_name: str, text: str) -> int:
    """A value of the integer type of this name (`byte`, `short`, `integer`, `long`)."""
    if _INTEGER.fullmatch(text) is None:
        raise _not_a(type_name, text)
    value = int(text)
    limit = INTEGER_LIMITS[type_name]
    if not -limit <= value < limit:
        raise InvalidValue(f"{excerpt(text)} is beyond the range of {type_name}")
    return value


def parse_double(text: str) -> float:
    """A number, NaN or an infinity; numbers beyond the range are infinities, as in Java."""
    special = _SPECIAL_FLOATS.get(text.lower())
    if special is not None:
        return special
    if _NUMBER.fullmatch(text) is None:
        raise _not_a("double", text)
    return float(text)


def to_float32(value: float) -> float:
    """The nearest value of the type `float`; beyond its range that is an infinity."""
    try:
        nearest: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    return nearest


def parse_float(text: str) -> float:
    return to_float32(parse_double(text))


def parse_number(text: str) -> Decimal:
    """The exact value of a number, however many digits it has (in reason)."""
    if len(text) > _MAX_NUMBER_LENGTH or _NUMBER.fullmatch(text) is None:
        raise _not_a("decimal", text)
    return Decimal(text)


def parse_decimal(data_type: DecimalType, text: str) -> Decimal:
    """The exact value of a number. A text with more digits than the type has room for is
    refused, zeros at its ends aside."""
    value = parse_number(text)
    if not decimal_fits(data_type, value):
        raise _not_a(type_name(data_type), text)
    return value


def decimal_fits(data_type: DecimalType, value: Decimal) -> bool:
    """Whether the type has room for every digit of a finite number."""
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    significant = "".join(map(str, digits)).lstrip("0")
    kept = significant.rstrip("0")
    exponent += len(significant) - len(kept)
    room = data_type.precision - data_type.scale
    return not kept or (-exponent <= data_type.scale and len(kept) + exponent <= room)


def parse_boolean(text: str) -> bool:
    lower = text.lower()
    if lower not in ("true", "false"):
        raise _not_a("boolean", text)
    return lower == "true"


def parse_date(text: str) -> date:
    match = _DATE.fullmatch(text)
    if match is None:
        raise _not_a("date", text)
    return _naive("date", text, match).date()


def parse_timestamp(text: str, *, zone: tzinfo | None) -> datetime:
    """An instant, in UTC. `zone` is what a text without a zone means; None refuses such a text.

    A local time that a change of the zone's offset skips or repeats has the offset before it, as
    in Java and so in Spark.
    """
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise _not_a("timestamp", text)
    naive = _naive("timestamp", text, match)
    offset = match[8]
    if offset is None and zone is None:
        raise InvalidValue(f"{excerpt(text)} does not say its time zone")
    named = _zone(text, offset) if offset is not None else zone
    try:
        return naive.replace(tzinfo=named).astimezone(UTC)
    except OverflowError:
        raise _beyond_python("timestamp", text) from None


def is_without_zone(text: str) -> bool:
    """Whether this is the text of a timestamp, and does not say its zone."""
    match = _TIMESTAMP.fullmatch(text)
    return match is not None and match[8] is None


def parse_timestamp_ntz(text: str) -> datetime:
    """A local time. A text with a zone is refused: engines differ in what they make of it."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None or match[8] is not None:
        raise _not_a("timestamp_ntz", text)
    return _naive("timestamp_ntz", text, match)


def _zone(text: str, offset: str) -> timezone:
    if offset in ("Z", "UTC"):
        return UTC
    hours, minutes = int(offset[1:3]), int(offset[-2:])
    delta = timedelta(hours=hours, minutes=minutes)
    if minutes > 59 or delta > WIDEST_OFFSET:
        raise _not_a("timestamp", text)
    return timezone(-delta if offset[0] == "-" else delta)


def _naive(type_name: str, text: str, match: re.Match[str]) -> datetime:
    groups = match.groups()
    year, month, day = int(groups[0]), int(groups[1]), int(groups[2])
    hour, minute, second, fraction = groups[3:7] if len(groups) > 3 else (None,) * 4
    representable = 1 <= year <= 9999
    # Calendars repeat after 400 years: another year stands in for one that Python lacks.
    stand_in = year if representable else 2000 + year % 400
    try:
        value = datetime(
            stand_in,
            month,
            day,
            int(hour or 0),
            int(minute or 0),
            int(second or 0),
            int((fraction or "").ljust(6, "0")),
        )
    except ValueError:
        raise _not_a(type_name, text) from None
    if not representable:
        raise _beyond_python(type_name, text)
    return value


def _not_a(type_name: str, text: str) -> InvalidValue:
    return InvalidValue(f"{excerpt(text)} is not a value of type {type_name}")


def _beyond_python(type_name: str, text: str) -> UnrepresentableValue:
    return UnrepresentableValue(f"{excerpt(text)} is a {type_name} outside the years 1 to 9999")
