"""Values in partitionValues and in folders (PROTOCOL.md, "Partition Value Serialization")."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, tzinfo
from decimal import Decimal
from functools import partial

from tidegate_protocol.base.text import excerpt
from tidegate_protocol.schema.data_types import (
    TIMESTAMP,
    DataType,
    DecimalType,
    PrimitiveType,
    type_name,
)
from tidegate_protocol.schema.values import (
    INTEGER_LIMITS,
    InvalidValue,
    UnrepresentableValue,
    Value,
    decimal_fits,
    is_without_zone,
    parse_boolean,
    parse_date,
    parse_decimal,
    parse_double,
    parse_float,
    parse_integer,
    parse_timestamp,
    parse_timestamp_ntz,
    to_float32,
)

__all__ = [
    "NULL_PARTITION",
    "InvalidValue",
    "UnrepresentableValue",
    "Value",
    "is_local",
    "parse_value",
    "parser",
    "partition_path",
    "serialize_value",
]

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""The folder name of a null partition."""

# Hive's and Spark's list; NUL, which no path can hold, is ours.
_ESCAPED_IN_PATHS = frozenset(map(chr, range(0x20))) | frozenset("\"#%'*/:=?\\\x7f{[]^")
_ESCAPED_BYTES = re.compile(r"(?:\\u[0-9A-Fa-f]{4})+")


def parse_value(data_type: DataType, text: str | None, *, zone: tzinfo = UTC) -> Value | None:
    """The value of a serialized partition value; None and "" are null.

    `zone` is what a timestamp without one means. Raises `InvalidValue`, and its subclass
    `UnrepresentableValue` for a valid value that Python's types cannot hold.
    """
    if not text:
        return None
    if data_type == TIMESTAMP:
        return parse_timestamp(text, zone=zone)
    return parser(data_type)(text)


def is_local(data_type: DataType, text: str | None) -> bool:
    """Whether this is a timestamp without a zone, which is one of "the system which wrote to the
    table". The log does not say which that is: Delta Spark takes each reader's own."""
    return data_type == TIMESTAMP and text is not None and is_without_zone(text)


def parser(data_type: DataType) -> Callable[[str], Value]:
    """What `parse_value` does with a text of this type that is not null, for a caller with many
    values of one column; a timestamp without a zone is in UTC. Raises `InvalidValue` for a type
    without partition values."""
    if isinstance(data_type, PrimitiveType) and data_type.name in _PARSERS:
        return _PARSERS[data_type.name]
    if isinstance(data_type, DecimalType):
        return partial(parse_decimal, data_type)
    raise _no_partition_values(data_type)


def serialize_value(data_type: DataType, value: Value | None) -> str | None:
    """The text of a value, None for null; "" cannot be told from null and becomes it.

    Timestamps are written in UTC with microseconds and a `Z`, floating point numbers as Java
    does. Raises `InvalidValue` for a value that is not of the type, or that has no text which is
    read back as the same value.
    """
    if value is None:
        return None
    if isinstance(data_type, DecimalType):
        text = _decimal_text(data_type, value)
    elif isinstance(data_type, PrimitiveType) and data_type.name in _SERIALIZERS:
        text = _SERIALIZERS[data_type.name](value)
    else:
        raise _no_partition_values(data_type)
    return text or None


def partition_path(values: Mapping[str, str | None], columns: Sequence[str]) -> str:
    """The folder of a partition, `month=5/day=__HIVE_DEFAULT_PARTITION__`, from serialized values.

    Escaped as Hive and Spark do; `paths.encode` makes it part of an action's path.
    """
    return "/".join(
        f"{_escape(column)}={_escape(values[column] or NULL_PARTITION)}" for column in columns
    )


def _escape(text: str) -> str:
    if _ESCAPED_IN_PATHS.isdisjoint(text):
        return text
    return "".join(f"%{ord(c):02X}" if c in _ESCAPED_IN_PATHS else c for c in text)


def _parse_string(text: str) -> str:
    return text


def _parse_binary(text: str) -> bytes:
    """Spark writes the bytes as UTF-8. Others write each byte as an escape, which Spark would
    read as the text of the escapes: such a value has two meanings and so is none."""
    if _ESCAPED_BYTES.fullmatch(text):
        raise InvalidValue(f"{excerpt(text)} may be bytes or their escapes")
    _check_unicode(text)
    return text.encode()


def _check_unicode(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidValue(f"{excerpt(text)} is not valid Unicode") from None


_PARSERS: dict[str, Callable[[str], Value]] = {
    **{name: partial(parse_integer, name) for name in INTEGER_LIMITS},
    "float": parse_float,
    "double": parse_double,
    "boolean": parse_boolean,
    "string": _parse_string,
    "binary": _parse_binary,
    "date": parse_date,
    "timestamp": partial(parse_timestamp, zone=UTC),
    "timestamp_ntz": parse_timestamp_ntz,
}


def _integer_text(name: str, value: Value) -> str:
    limit = INTEGER_LIMITS[name]
    if not isinstance(value, int) or isinstance(value, bool) or not -limit <= value < limit:
        raise _not_a(name, value)
    return str(value)


def _double_text(value: Value) -> str:
    if not isinstance(value, float):
        raise _not_a("double", value)
    return java_number(value, repr(value))


def _float_text(value: Value) -> str:
    if not isinstance(value, float):
        raise _not_a("float", value)
    nearest = to_float32(value)
    # Nine digits tell any two 4-byte numbers apart; the fewest that do are wanted.
    candidates = (f"{nearest:.{digits}g}" for digits in range(1, 10))
    shortest = next(
        (text for text in candidates if to_float32(float(text)) == nearest), repr(nearest)
    )
    return java_number(nearest, shortest)


def java_number(value: float, digits: str) -> str:
    """A floating point number as Java's `Double.toString` lays it out: with a point, and with an
    exponent below 0.001 and from 10,000,000. `digits` is any text with the digits to show."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    sign, figures, exponent = Decimal(digits).as_tuple()
    assert isinstance(exponent, int)
    shown = "".join(map(str, figures)).rstrip("0") or "0"
    point = len(figures) + exponent
    minus = "-" if sign else ""
    if value == 0 or -3 < point <= 7:
        whole = shown[: max(point, 0)].ljust(point, "0") or "0"
        fraction = "0" * -point + shown[max(point, 0) :]
        return f"{minus}{whole}.{fraction or '0'}"
    return f"{minus}{shown[0]}.{shown[1:] or '0'}E{point - 1}"


def _decimal_text(data_type: DecimalType, value: Value) -> str:
    if (
        not isinstance(value, Decimal)
        or not value.is_finite()
        or not decimal_fits(data_type, value)
    ):
        raise _not_a(type_name(data_type), value)
    unsigned_zero = value if value else Decimal(0)
    return f"{unsigned_zero:.{data_type.scale}f}"


def _boolean_text(value: Value) -> str:
    if not isinstance(value, bool):
        raise _not_a("boolean", value)
    return "true" if value else "false"


def _string_text(value: Value) -> str:
    if not isinstance(value, str):
        raise _not_a("string", value)
    _check_unicode(value)
    return value


def _binary_text(value: Value) -> str:
    if not isinstance(value, bytes):
        raise _not_a("binary", value)
    try:
        text = value.decode()
    except UnicodeDecodeError:
        raise InvalidValue("bytes that are not UTF-8 have no text as a partition value") from None
    _parse_binary(text)
    return text


def _date_text(value: Value) -> str:
    if not isinstance(value, date) or isinstance(value, datetime):
        raise _not_a("date", value)
    return value.isoformat()


def _timestamp_text(value: Value) -> str:
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise _not_a("timestamp", value)
    try:
        naive = value.astimezone(UTC).replace(tzinfo=None)
    except OverflowError:
        raise _not_a("timestamp", value) from None
    return naive.isoformat(timespec="microseconds") + "Z"


def _timestamp_ntz_text(value: Value) -> str:
    if not isinstance(value, datetime) or value.tzinfo is not None:
        raise _not_a("timestamp_ntz", value)
    return value.isoformat(sep=" ")


_SERIALIZERS: dict[str, Callable[[Value], str]] = {
    **{name: partial(_integer_text, name) for name in INTEGER_LIMITS},
    "float": _float_text,
    "double": _double_text,
    "boolean": _boolean_text,
    "string": _string_text,
    "binary": _binary_text,
    "date": _date_text,
    "timestamp": _timestamp_text,
    "timestamp_ntz": _timestamp_ntz_text,
}


def _no_partition_values(data_type: DataType) -> InvalidValue:
    return InvalidValue(f"the type {type_name(data_type)} has no partition values")


def _not_a(type_name: str, value: Value) -> InvalidValue:
    return InvalidValue(f"{excerpt(repr(value))} is not a value of type {type_name} as Python's")
