"""A bound holds for the values that it was made of, however a writer rounded it."""

import datetime as dt
import json
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.protocol.log.roundings import cut_to_minutes, maximum_of_old_delta
from tidegate_protocol.log.bounds import lower_bound, upper_bound
from tidegate_protocol.scan.statistics_writing import truncate_maximum
from tidegate_protocol.schema.data_types import (
    DATE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
)
from tidegate_protocol.schema.values import WIDEST_OFFSET, Value

LAST = "\U0010ffff"
FLOWER = "\U0001f33c"
MINUTE = dt.timedelta(minutes=1)


def bounds(data_type: DataType, text: object) -> tuple[Value | None, Value | None]:
    raw = msgspec.Raw(json.dumps(text).encode())
    return lower_bound(data_type, raw), upper_bound(data_type, raw)


def instant(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)


class TestStrings:
    @given(
        st.text(max_size=6), st.text(st.sampled_from("a?\ufffd\uffff" + FLOWER + LAST), max_size=8)
    )
    def test_a_maximum_of_old_delta_is_above_all_that_it_was_cut_from(self, start, rest):
        value = start + rest
        for length in range(1, 8):
            written = maximum_of_old_delta(value, length)
            _, high = bounds(STRING, written)
            if high is None:
                assert set(written.partition("\ufffd")[0]) <= {LAST, "?"}
            else:
                assert high >= value

    @pytest.mark.parametrize(
        ("written", "low", "high"),
        [
            ("ab\ufffd", "ab", "ac"),
            # Half a character, which is a question mark in Java's UTF-8.
            ("ab?\ufffd", "ab", "ac"),
            ("ab??\ufffd", "ab?", "ab@"),
            ("ab?", "ab?", "ab?"),
            # Bytes that were no UTF-8.
            ("a\ufffdb\ufffd", "a", "b"),
            ("a\ud7ff\ufffd", "a\ud7ff", "a\ue000"),
            (f"a{LAST}{LAST}\ufffd", f"a{LAST}{LAST}", "b"),
            (f"{LAST}\ufffd", LAST, None),
            ("\ufffd", "", None),
            # Delta's own from 3.3 on is above what it was cut from.
            (f"ab{LAST}", f"ab{LAST}", f"ab{LAST}"),
        ],
    )
    def test_from_the_replacement_character_on_nothing_is_certain(self, written, low, high):
        assert bounds(STRING, written) == (low, high)

    @given(st.text(st.sampled_from("ab\ufffd\uffff" + FLOWER + LAST), max_size=70))
    def test_a_maximum_of_the_client_is_above_all_that_it_was_cut_from(self, value):
        written = truncate_maximum(value)
        if written is None:
            return
        high = bounds(STRING, written)[1]
        if high is None:
            assert set(written.partition("\ufffd")[0]) <= {LAST}
        else:
            assert high >= value


class TestTimestamps:
    @given(
        st.datetimes(dt.datetime(1583, 1, 3), dt.datetime(9999, 12, 28)),
        st.sampled_from(
            ["Europe/Stockholm", "Africa/Monrovia", "America/New_York", "Asia/Manila", "UTC"]
        ),
    )
    def test_an_offset_that_was_cut_to_minutes(self, value, zone):
        value = value.replace(tzinfo=dt.UTC)
        low, high = bounds(TIMESTAMP, cut_to_minutes(value, ZoneInfo(zone)))
        assert low <= value <= high
        assert high - low <= 4 * WIDEST_OFFSET + dt.timedelta(milliseconds=1)

    @given(
        st.datetimes(dt.datetime(1583, 1, 3), dt.datetime(9999, 12, 28)),
        st.integers(-18 * 3600, 18 * 3600),
    )
    def test_of_a_session_whose_zone_is_any_offset(self, value, seconds):
        assume(value.year < 1972 or abs(seconds) // 60 % 15)
        value = value.replace(tzinfo=dt.UTC)
        zone = dt.timezone(dt.timedelta(seconds=seconds))
        low, high = bounds(TIMESTAMP, cut_to_minutes(value, zone))
        assert low <= value <= high

    @pytest.mark.parametrize(
        ("written", "value"),
        [
            # delta-io/delta#5249
            ("1850-01-01T01:01:01.000+00:53", "1850-01-01T00:07:33"),
            # The policy LEGACY, in Manila, Monrovia, Juneau, Accra and Casablanca.
            ("1840-01-01T00:00:00.123+08:00", "1840-01-01T15:56:08.123456"),
            ("1850-01-01T01:01:01.000Z", "1850-01-01T01:44:09"),
            ("1899-12-31T15:01:19.000-09:00", "1899-12-31T23:59:00"),
            ("1900-01-01T00:00:00.000-00:16", "1900-01-01T00:16:08"),
            ("1910-01-01T00:00:00.000-00:30", "1910-01-01T00:30:20"),
            ("1969-06-01T00:00:00.999-00:44", "1969-06-01T00:44:30.999999"),
        ],
    )
    def test_as_spark_wrote_them(self, written, value):
        low, high = bounds(TIMESTAMP, written)
        assert low <= instant(value) <= high

    @pytest.mark.parametrize("zone", ["Z", "+00:00", "-05:00", "+05:30", "+05:45", "-0330"])
    def test_of_the_zones_there_are_since_1973_they_are_exact(self, zone):
        low, high = bounds(TIMESTAMP, f"2024-01-01T00:00:00.000{zone}")
        assert high - low == dt.timedelta(milliseconds=1)

    @pytest.mark.parametrize("zone", ["+00:53", "-0044", "+05:31"])
    def test_of_others_they_are_wide_by_a_minute_each_way(self, zone):
        low, high = bounds(TIMESTAMP, f"2024-01-01T00:00:00.000{zone}")
        assert high - low == 2 * MINUTE + dt.timedelta(milliseconds=1)

    def test_a_checkpoint_has_no_offsets(self):
        """Statistics that are a struct there become texts in UTC, and were read from others'."""
        low, high = bounds(TIMESTAMP, "1972-01-06T00:44:00.000000Z")
        assert low <= instant("1972-01-06T00:44:30") <= high

    def test_a_local_time_has_no_offset(self):
        low, high = bounds(TIMESTAMP_NTZ, "1850-01-01T01:01:01.000")
        assert low == dt.datetime(1850, 1, 1, 1, 1, 1)
        assert high == low + dt.timedelta(milliseconds=1)

    def test_an_offset_with_seconds_is_not_read(self):
        assert bounds(TIMESTAMP, "1850-01-01T01:01:01.000+00:53:28") == (None, None)

    @pytest.mark.parametrize(
        "written", ["1582-10-15T12:00:00.000Z", "0044-03-15T12:00:00.000+08:00"]
    )
    def test_two_calendars_and_two_eras_leave_no_minimum(self, written):
        """Spark's of 1582-10-05 and of the year -43, by LEGACY."""
        low, high = bounds(TIMESTAMP, written)
        assert low is None
        assert high > instant(written[:-6] if written[-1] != "Z" else written[:-1])
        day = written[:10]
        assert bounds(DATE, day) == (None, dt.date.fromisoformat(day))

    def test_at_the_ends_of_time_nothing_is_known(self):
        assert bounds(TIMESTAMP, "0001-01-01T00:00:00.000+08:00") == (None, None)
        assert bounds(TIMESTAMP, "9999-12-31T23:59:59.999-00:53")[1] is None
