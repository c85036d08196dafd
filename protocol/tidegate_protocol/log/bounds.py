"""What a bound in a file's statistics proves of a column's values (PROTOCOL.md, "Per-file
Statistics").

Writers round bounds, and not always outwards. A bound read here holds whichever writer rounded
it: it may be wider than its text, and None says that nothing is known.
"""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from math import isnan

import msgspec

from tidegate_protocol.schema.data_types import DataType, DecimalType, PrimitiveType
from tidegate_protocol.schema.values import (
    INTEGER_LIMITS,
    WIDEST_OFFSET,
    InvalidValue,
    Value,
    parse_boolean,
    parse_date,
    parse_double,
    parse_float,
    parse_integer,
    parse_number,
    parse_timestamp,
    parse_timestamp_ntz,
)

_TEXT = msgspec.json.Decoder(str)
_LONGEST = 16 * 1024
"""In bytes; of a longer bound nothing is known, because each predicate reads a bound anew."""
_UNREADABLE = (InvalidValue, msgspec.DecodeError, UnicodeError, OverflowError)

# delta-rs takes decimals through 8-byte numbers, which hold 15 digits for sure; what it writes of
# longer ones is off by up to two units in the last binary place (2 ** -52 of the value).
_EXACT_DIGITS = 15
_DECIMAL_ERROR = Decimal("1e-15")
_DOWN = Context(prec=80, rounding=ROUND_FLOOR)
_UP = Context(prec=80, rounding=ROUND_CEILING)

_NONE = timedelta()
_MILLISECOND = timedelta(milliseconds=1)
"""What writers cut off a timestamp."""
_MINUTE = timedelta(minutes=1)
"""Spark before 4.0 cuts a zone's offset to minutes (delta-io/delta#5249), and so does any release
under the `timeParserPolicy` LEGACY; an offset of less than a minute becomes `Z`."""
_LAST_SECONDS = datetime(1973, 1, 1, tzinfo=UTC)
"""In 1972 Liberia was the last to give up an offset with seconds."""
_LONGEST_OFFSET = len("+00:00")
_OF_NO_ZONE = re.compile(r".?[+-][0-9]{2}:?(?!00|15|30|45)[0-9]{2}")
"""A session's zone may be any offset with seconds, not only those that zones have had."""
_ANY_OFFSET = 2 * WIDEST_OFFSET
_FIRST_OFFSETS = datetime(1900, 1, 1, tzinfo=UTC) + _ANY_OFFSET
"""Of days before 1900, LEGACY writes the local time with today's offset of the zone, which may be
hours from that day's offset."""
_TWO_CALENDARS = 1582
"""The year of ten days that LEGACY's calendar lacks; LEGACY writes the day behind them in their
place. LEGACY also writes years before the first without a sign: -43 as 44."""

_REPLACED = "\ufffd"
_LAST_CHARACTER = "\U0010ffff"
_SURROGATES, _BEHIND_SURROGATES = 0xD800, 0xE000


def lower_bound(data_type: DataType, raw: msgspec.Raw) -> Value | None:
    """No value of the column is below this, nulls aside. `raw` is the bound's JSON."""
    try:
        value = _as_written(data_type, raw)
        match value:
            case Decimal() if _is_rounded(data_type):
                return _DOWN.subtract(value, _UP.multiply(value.copy_abs(), _DECIMAL_ERROR))
            case date() if value.year <= _TWO_CALENDARS:
                return None
            case datetime():
                return value - _doubt(value, raw)
            case str() if _REPLACED in value:
                return _certain_prefix(value)
        return value
    except _UNREADABLE:
        return None


def upper_bound(data_type: DataType, raw: msgspec.Raw) -> Value | None:
    """No value of the column is above this, nulls aside. `raw` is the bound's JSON.

    Nothing is ever known of `float` and `double`: Spark orders NaN above all numbers, and many
    writers leave NaN out of the maximum.
    """
    try:
        value = _as_written(data_type, raw)
        match value:
            case float():
                return None
            case Decimal() if _is_rounded(data_type):
                return _UP.add(value, _UP.multiply(value.copy_abs(), _DECIMAL_ERROR))
            case datetime():
                return value + _MILLISECOND + _doubt(value, raw)
            case str() if _REPLACED in value:
                return _above_all_with(_certain_prefix(value))
        return value
    except _UNREADABLE:
        return None


def _doubt(value: datetime, raw: msgspec.Raw) -> timedelta:
    """How far the instant may be from the writer's. A local time has no offset to be cut."""
    if value.tzinfo is None:
        return _NONE
    if value < _LAST_SECONDS:
        return _ANY_OFFSET if value < _FIRST_OFFSETS else _MINUTE
    return _MINUTE if _OF_NO_ZONE.fullmatch(_quoted(raw)[-_LONGEST_OFFSET:]) else _NONE


def _certain_prefix(text: str) -> str:
    """What the value begins with of which a writer made the bound.

    U+FFFD takes the place of bytes that are no UTF-8, and Delta before 3.3 ends a maximum that it
    cuts with U+FFFD, which is below characters outside the basic plane (delta-io/delta#3430).
    Where the cut goes through such a character, its first half becomes a question mark.
    """
    return text.partition(_REPLACED)[0].removesuffix("?")


def _above_all_with(prefix: str) -> str | None:
    """The least text above all that begin with the prefix; None where there is none."""
    kept = prefix.rstrip(_LAST_CHARACTER)
    if not kept:
        return None
    following = ord(kept[-1]) + 1
    return kept[:-1] + chr(_BEHIND_SURROGATES if following == _SURROGATES else following)


def _is_rounded(data_type: DataType) -> bool:
    return isinstance(data_type, DecimalType) and data_type.precision > _EXACT_DIGITS


def _as_written(data_type: DataType, raw: msgspec.Raw) -> Value | None:
    if len(raw) > _LONGEST:
        return None
    if isinstance(data_type, DecimalType):
        return parse_number(_unquoted(raw))
    if not isinstance(data_type, PrimitiveType) or data_type.name not in _READERS:
        return None
    return _READERS[data_type.name](raw)


def _unquoted(raw: msgspec.Raw) -> str:
    return bytes(raw).decode()


def _quoted(raw: msgspec.Raw) -> str:
    return _TEXT.decode(raw)


def _floating(parse: Callable[[str], float]) -> Callable[[msgspec.Raw], float | None]:
    def read(raw: msgspec.Raw) -> float | None:
        # Spark puts what is no number for JSON (NaN, the infinities) into quotes.
        value = parse(_quoted(raw) if bytes(raw)[:1] == b'"' else _unquoted(raw))
        return None if isnan(value) else value

    return read


def _integer(type_name: str) -> Callable[[msgspec.Raw], int]:
    return lambda raw: parse_integer(type_name, _unquoted(raw))


_READERS: dict[str, Callable[[msgspec.Raw], Value | None]] = {
    **{name: _integer(name) for name in INTEGER_LIMITS},
    "float": _floating(parse_float),
    "double": _floating(parse_double),
    "boolean": lambda raw: parse_boolean(_unquoted(raw)),
    "string": _quoted,
    "date": lambda raw: parse_date(_quoted(raw)),
    # Without a zone there is no telling which one the writer meant.
    "timestamp": lambda raw: parse_timestamp(_quoted(raw), zone=None),
    "timestamp_ntz": lambda raw: parse_timestamp_ntz(_quoted(raw)),
}
