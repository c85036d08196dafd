"""Bounds as writers have rounded them, some of them the wrong way."""

import datetime as dt

_TIE_BREAKER = "\ufffd".encode("utf-16-be")
_UNIT = len(_TIE_BREAKER)


def maximum_of_old_delta(text: str, length: int = 32) -> str:
    """A string's maximum by Delta before 3.3: cut by UTF-16 units, and by what they compare to."""
    units = text.encode("utf-16-be")
    end = length * _UNIT
    if len(units) <= end:
        return text
    while units[end : end + _UNIT] >= _TIE_BREAKER:
        end += _UNIT
    cut = units[:end] + (_TIE_BREAKER if end < len(units) else b"")
    # As Java writes half a character.
    return cut.decode("utf-16-be", "surrogatepass").encode(errors="replace").decode()


def cut_to_minutes(value: dt.datetime, zone: dt.tzinfo) -> str:
    """An instant as Spark's JSON had it before 4.0: in the session's zone, its offset cut."""
    local = value.astimezone(zone)
    offset = local.utcoffset()
    assert offset is not None
    minutes = abs(offset) // dt.timedelta(minutes=1)
    sign = "-" if offset < dt.timedelta() else "+"
    shown = f"{sign}{minutes // 60:02}:{minutes % 60:02}" if minutes else "Z"
    return local.replace(tzinfo=None).isoformat(timespec="milliseconds") + shown
