"""Which calendar the days and instants of a data file are by, as Spark's reader has it.

Spark wrote those of the Julian calendar, before its reform, until release 3, as a session may still
have it do, and reads such files accordingly (`DataSourceUtils.getRebaseSpec`). To all others, Delta
among them, they are Gregorian.
"""

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime

ONE_CALENDAR_DAYS = date(1582, 10, 15)
ONE_CALENDAR_INSTANTS = datetime(1900, 1, 1, tzinfo=UTC)
"""From then on both calendars, and the time zones of their instants, are the same: Spark's own
bounds (`RebaseDateTime`)."""

_WRITER = b"org.apache.spark.version"
_LEGACY = b"org.apache.spark.legacyDateTime"
_LEGACY_INT96 = b"org.apache.spark.legacyINT96"
_FIRST, _FIRST_INT96 = (3, 0), (3, 1)


def is_gregorian(metadata: Mapping[bytes, bytes]) -> bool:
    """Whether a file's metadata tell that its days, and instants that are no INT96, are. Of files
    of other writers than Spark a session decides how Spark reads them."""
    return _WRITER in metadata and not is_julian(metadata)


def is_julian(metadata: Mapping[bytes, bytes], *, int96: bool = False) -> bool:
    """Whether a file's metadata tell that its early days and instants are, or the INT96 ones."""
    if _WRITER not in metadata:
        return False
    key, first = (_LEGACY_INT96, _FIRST_INT96) if int96 else (_LEGACY, _FIRST)
    release = tuple(int(number) for number in re.findall(rb"\d+", metadata[_WRITER])[:2])
    return key in metadata or release < first
