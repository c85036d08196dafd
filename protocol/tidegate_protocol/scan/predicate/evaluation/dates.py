"""Spark's functions of dates and timestamps, in UTC."""

from collections.abc import Callable, Sequence
from datetime import date, timedelta

from tidegate_protocol.scan.predicate.evaluation import datetimes
from tidegate_protocol.scan.predicate.evaluation.arithmetic import add_days, apply
from tidegate_protocol.scan.predicate.evaluation.casts import as_count, cast
from tidegate_protocol.scan.predicate.evaluation.datetimes import MICROS_PER_DAY, MICROS_PER_SECOND
from tidegate_protocol.scan.predicate.evaluation.nodes import Node, Scalar, known, to_scalar
from tidegate_protocol.scan.predicate.evaluation.values import UNKNOWN, Range
from tidegate_protocol.schema.data_types import (
    DATE,
    INTEGER,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    DataType,
)

Builder = Callable[[Sequence[Node]], Node | None]

_SECOND = MICROS_PER_SECOND
_UNITS = {"HOUR": 3600 * _SECOND, "MINUTE": 60 * _SECOND, "SECOND": _SECOND}
_SMALLER_UNITS = {"MILLISECOND": 1000, "MICROSECOND": 1}
_DAY_UNITS = {
    "YEAR": "YEAR",
    "YYYY": "YEAR",
    "YY": "YEAR",
    "QUARTER": "QUARTER",
    "MONTH": "MONTH",
    "MON": "MONTH",
    "MM": "MONTH",
    "WEEK": "WEEK",
}
_MOMENT_UNITS = {**_DAY_UNITS, "DAY": "DAY", "DD": "DAY"}


def extract(name: str, operand: Node) -> Scalar | None:
    """`EXTRACT(name FROM operand)`; None for what is not the same as the function of the name."""
    return _field_of(name, operand) if name in _EXTRACTED else None


def _field_of(name: str, operand: Node) -> Scalar | None:
    """A field of a date or timestamp, as the function of the name has it."""
    if name in _DATE_FIELDS:
        day = _as(operand, DATE)
        compute, rising = _DATE_FIELDS[name]
        return None if day is None else apply(INTEGER, _on_date(compute), day, rising=rising)
    if name in _TIME_FIELDS:
        moment = _as(operand, TIMESTAMP)
        return None if moment is None else apply(INTEGER, _TIME_FIELDS[name], moment)
    return None


def _as(node: Node, type_: DataType) -> Scalar | None:
    """The argument as a date or timestamp, as Spark casts what it is given."""
    value = to_scalar(node)
    if value.type not in (DATE, TIMESTAMP, TIMESTAMP_NTZ, STRING, VOID):
        return None
    return cast(value, type_)


def _on_date(compute: Callable[[date], int]) -> Callable[[int], int | Range]:
    def computed(days: int) -> int | Range:
        day = datetimes.to_date(days)
        return UNKNOWN if day is None else compute(day)

    return computed


def _to_day(change: Callable[[date], date]) -> Callable[[int], int | Range]:
    def changed(days: int) -> int | Range:
        day = datetimes.to_date(days)
        return UNKNOWN if day is None else datetimes.from_date(change(day))

    return changed


_DATE_FIELDS: dict[str, tuple[Callable[[date], int], bool]] = {
    "year": (lambda day: day.year, True),
    "quarter": (lambda day: (day.month + 2) // 3, False),
    "month": (lambda day: day.month, False),
    "day": (lambda day: day.day, False),
    "dayofmonth": (lambda day: day.day, False),
    "dayofyear": (lambda day: day.timetuple().tm_yday, False),
    "dayofweek": (lambda day: day.isoweekday() % 7 + 1, False),
    "weekday": (lambda day: day.weekday(), False),
    "weekofyear": (lambda day: day.isocalendar().week, False),
}
_TIME_FIELDS: dict[str, Callable[[int], int]] = {
    "hour": lambda micros: micros % MICROS_PER_DAY // _UNITS["HOUR"],
    "minute": lambda micros: micros % _UNITS["HOUR"] // _UNITS["MINUTE"],
    "second": lambda micros: micros % _UNITS["MINUTE"] // _SECOND,
}


# The seconds that EXTRACT finds have a fraction.
_EXTRACTED = frozenset({"year", "quarter", "month", "day", "hour", "minute"})


def _field(name: str) -> Builder:
    return lambda arguments: _field_of(name, arguments[0])


def _cast_to(type_: DataType) -> Builder:
    return lambda arguments: cast(to_scalar(arguments[0]), type_)


def _parsed(type_: DataType) -> Builder:
    return lambda arguments: _as(arguments[0], type_)


def _moved(sign: int) -> Builder:
    def build(arguments: Sequence[Node]) -> Node | None:
        day, count = _as(arguments[0], DATE), as_count(to_scalar(arguments[1]))
        if day is None or count is None:
            return None
        return add_days(day, count, sign=sign)

    return build


def _start_of(unit: str) -> Callable[[date], date]:
    def start(day: date) -> date:
        match unit:
            case "YEAR":
                return day.replace(month=1, day=1)
            case "QUARTER":
                return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
            case "MONTH":
                return day.replace(day=1)
            case "WEEK":
                # Monday; the first day of the calendar is one.
                return day - timedelta(days=day.weekday())
            case _:
                return day

    return start


def _unit(node: Node) -> str | None:
    """The unit's name, where it is written in the text."""
    value = to_scalar(node)
    if value.type != STRING or value.columns or value.foreign:
        return None
    name = known(value)
    return name.upper() if isinstance(name, str) and name.isascii() else None


def _trunc(arguments: Sequence[Node]) -> Node | None:
    """`trunc(date, unit)`."""
    day, unit = _as(arguments[0], DATE), _DAY_UNITS.get(_unit(arguments[1]) or "")
    if day is None or unit is None:
        return None
    return apply(DATE, _to_day(_start_of(unit)), day, rising=True)


def _date_trunc(arguments: Sequence[Node]) -> Node | None:
    """`date_trunc(unit, timestamp)`."""
    name, moment = _unit(arguments[0]) or "", _as(arguments[1], TIMESTAMP)
    if moment is None:
        return None
    size = {**_UNITS, **_SMALLER_UNITS}.get(name)
    if size is not None:
        return apply(TIMESTAMP, lambda micros: micros // size * size, moment, rising=True)
    unit = _MOMENT_UNITS.get(name)
    if unit is None:
        return None
    start = _to_day(_start_of(unit))

    def truncated(micros: int) -> int | Range:
        days = start(micros // MICROS_PER_DAY)
        return days if isinstance(days, Range) else days * MICROS_PER_DAY

    return apply(TIMESTAMP, truncated, moment, rising=True)


FUNCTIONS: list[tuple[str, int, int, Builder]] = [
    *((name, 1, 1, _field(name)) for name in (*_DATE_FIELDS, *_TIME_FIELDS)),
    ("date", 1, 1, _cast_to(DATE)),
    ("date_add dateadd", 2, 2, _moved(1)),
    ("date_sub", 2, 2, _moved(-1)),
    ("date_trunc", 2, 2, _date_trunc),
    ("timestamp", 1, 1, _cast_to(TIMESTAMP)),
    ("to_date", 1, 1, _parsed(DATE)),
    ("to_timestamp", 1, 1, _parsed(TIMESTAMP)),
    ("trunc", 2, 2, _trunc),
]
"""Names, fewest and most arguments, builder."""
