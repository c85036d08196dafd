"""Dates as days and timestamps as microseconds since 1970-01-01 (UTC), and Spark's text of them.

Spark's casts read more spellings than the log's values have (`2024-1-5`, `2024`, a time of day
without seconds). A year outside 1 to 9999 is left unknown: no calendar here reaches there.
"""

import re
from datetime import UTC, date, datetime, timedelta

from tidegate_protocol.scan.predicate.evaluation.outcomes import FAILED, Failed
from tidegate_protocol.scan.predicate.evaluation.values import UNKNOWN, Range

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_FIRST_DAY = date.min.toordinal() - _EPOCH_DAY
_LAST_DAY = date.max.toordinal() - _EPOCH_DAY
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
MICROS_PER_SECOND = 1_000_000
MICROS_PER_DAY = 86_400 * MICROS_PER_SECOND

TRIMMED = "".join(map(chr, [*range(0x21), 0x7F]))
"""What Spark's casts take off both ends of a text."""

_DATE = r"([+-]?[0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})"
_CAST_DATE = re.compile(_DATE + r"(?:[ T].*)?)?)?", re.DOTALL)
_CAST_TIMESTAMP = re.compile(
    _DATE
    + r"(?:[ T]([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]{1,6}))?)?"
    + r"(Z|UTC|[+-][0-9]{2}:[0-9]{2})?)?)?)?"
)
_MOVING = re.compile("epoch|now|today|tomorrow|yesterday", re.IGNORECASE)
"""Spark puts the day in the place of a literal that begins so."""


def from_date(value: date) -> int:
    return value.toordinal() - _EPOCH_DAY


def from_datetime(value: datetime) -> int:
    """Microseconds of an aware datetime, or of a naive one as if it were in UTC."""
    naive = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
    return (naive - _EPOCH) // _MICROSECOND


def to_date(days: int) -> date | None:
    """None outside the years 1 to 9999."""
    if _FIRST_DAY <= days <= _LAST_DAY:
        return date.fromordinal(days + _EPOCH_DAY)
    return None


def to_datetime(micros: int) -> datetime | None:
    """A naive datetime in UTC; None outside the years 1 to 9999."""
    if _FIRST_DAY <= micros // MICROS_PER_DAY <= _LAST_DAY:
        return _EPOCH + micros * _MICROSECOND
    return None


def date_of_text(text: str) -> int | Range | Failed:
    """What `CAST(text AS DATE)` is, in days."""
    trimmed = text.strip(TRIMMED)
    match = _CAST_DATE.fullmatch(trimmed)
    if match is None:
        return UNKNOWN if _MOVING.match(trimmed) else FAILED
    moment = _moment(match)
    return moment if isinstance(moment, Range | Failed) else from_date(moment)


def timestamp_of_text(text: str, *, local: bool) -> int | Range | Failed:
    """What `CAST(text AS TIMESTAMP)` is in UTC, in microseconds; `local` for TIMESTAMP_NTZ.

    Zones by name and times without a day are left unknown.
    """
    match = _CAST_TIMESTAMP.fullmatch(text.strip(TRIMMED))
    if match is None:
        return UNKNOWN
    zone = match[8]
    if local and zone is not None:
        # Some versions drop the zone, others refuse it.
        return UNKNOWN
    moment = _moment(match)
    if isinstance(moment, Range | Failed):
        return moment
    micros = from_datetime(moment)
    if zone is None or not zone[1:2].isdigit():
        return micros
    hours, minutes = int(zone[1:3]), int(zone[4:6])
    if minutes > 59 or hours * 60 + minutes > 18 * 60:
        return FAILED
    offset = (hours * 60 + minutes) * 60 * MICROS_PER_SECOND
    return micros + offset if zone[0] == "-" else micros - offset


def says_zone(text: str) -> bool:
    """Whether `CAST(text AS TIMESTAMP)` is the same instant in sessions of any zone."""
    match = _CAST_TIMESTAMP.fullmatch(text.strip(TRIMMED)) if ":" in text else None
    return match is not None and match[8] is not None


def date_text(days: int) -> str | Range:
    """What `CAST(date AS STRING)` is."""
    day = to_date(days)
    return UNKNOWN if day is None else day.isoformat()


def timestamp_text(micros: int) -> str | Range:
    """What `CAST(timestamp AS STRING)` is in UTC: no zeros at the end of a fraction."""
    moment = to_datetime(micros)
    if moment is None:
        return UNKNOWN
    text = moment.isoformat(sep=" ")
    return text.rstrip("0") if "." in text else text


def _moment(match: re.Match[str]) -> datetime | Range | Failed:
    parts: list[str | None] = [*match.groups(), None, None, None, None]
    year = int(match[1])
    fraction = parts[6] or ""
    try:
        value = datetime(
            # Calendars repeat after 400 years: 2000 stands in for a year that Python lacks.
            2000 + year % 400,
            int(parts[1] or 1),
            int(parts[2] or 1),
            int(parts[3] or 0),
            int(parts[4] or 0),
            int(parts[5] or 0),
            int(fraction.ljust(6, "0")),
        )
    except ValueError:
        return FAILED
    if not 1 <= year <= 9999:
        return UNKNOWN
    return value.replace(year=year)
