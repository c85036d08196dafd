"""Typed values: which texts are values, and which value each of them is."""

import datetime as dt
import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.protocol.strategies import decimal_types
from tidegate_protocol.schema.data_types import DecimalType
from tidegate_protocol.schema.values import (
    INTEGER_LIMITS,
    InvalidValue,
    UnrepresentableValue,
    decimal_fits,
    parse_boolean,
    parse_date,
    parse_decimal,
    parse_double,
    parse_float,
    parse_integer,
    parse_number,
    parse_timestamp,
    parse_timestamp_ntz,
    to_float32,
)


def utc(*parts: int) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=dt.UTC)


class TestNumbers:
    @pytest.mark.parametrize(("name", "limit"), INTEGER_LIMITS.items())
    def test_integers_have_a_range(self, name, limit):
        assert parse_integer(name, str(limit - 1)) == limit - 1
        assert parse_integer(name, str(-limit)) == -limit
        for beyond in (limit, -limit - 1):
            with pytest.raises(InvalidValue, match=f"beyond the range of {name}"):
                parse_integer(name, str(beyond))

    @pytest.mark.parametrize(("text", "value"), [("+5", 5), ("-0", 0), ("007", 7)])
    def test_integers(self, text, value):
        assert parse_integer("long", text) == value

    @pytest.mark.parametrize(
        "text", ["", " 1", "1 ", "1.0", "1e3", "1_000", "0x1", "٣", "--1", "one", "1" * 5000]
    )
    def test_what_is_no_integer(self, text):
        with pytest.raises(InvalidValue):
            parse_integer("long", text)

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("1", 1.0),
            ("-1.5", -1.5),
            (".5", 0.5),
            ("5.", 5.0),
            ("1.0E10", 1e10),
            ("1e-3", 0.001),
            ("100000000000000000000", 1e20),
            ("1e9999", math.inf),
            ("-1e9999", -math.inf),
            ("Infinity", math.inf),
            ("-Infinity", -math.inf),
            ("+inf", math.inf),
        ],
    )
    def test_doubles(self, text, value):
        assert parse_double(text) == value

    @pytest.mark.parametrize("text", ["NaN", "nan", "NAN"])
    def test_not_a_number_is_a_double(self, text):
        assert math.isnan(parse_double(text))

    @pytest.mark.parametrize("text", ["", " 1", "1_0", "1f", "1,5", "0x1p3", ".", "e5", "٣", "1e"])
    def test_what_is_no_double(self, text):
        with pytest.raises(InvalidValue, match="is not a value of type double"):
            parse_double(text)

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("0.1", 0.10000000149011612),
            ("16777217", 16777216.0),
            ("1e39", math.inf),
            ("-1e39", -math.inf),
            ("1e-50", 0.0),
        ],
    )
    def test_floats_are_the_nearest_four_byte_numbers(self, text, value):
        assert parse_float(text) == value

    @given(st.floats(width=32))
    def test_four_byte_numbers_are_their_own_nearest(self, value):
        assert to_float32(value) == value or math.isnan(to_float32(value))

    @pytest.mark.parametrize("text", ["true", "True", "TRUE"])
    def test_true(self, text):
        assert parse_boolean(text) is True

    @pytest.mark.parametrize("text", ["false", "FALSE"])
    def test_false(self, text):
        assert parse_boolean(text) is False

    @pytest.mark.parametrize("text", ["", "t", "1", "yes", " true"])
    def test_what_is_no_boolean(self, text):
        with pytest.raises(InvalidValue, match="is not a value of type boolean"):
            parse_boolean(text)


class TestDecimals:
    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("1.50", "1.5"),
            ("-12345678.90", "-12345678.9"),
            ("99999999.99", "99999999.99"),
            ("0.0000000", "0"),
            ("1.000000", "1"),
            ("4E-2", "0.04"),
            ("1e7", "10000000"),
            ("000000000000001", "1"),
        ],
    )
    def test_a_number_with_room_in_the_type(self, text, value):
        assert parse_decimal(DecimalType(10, 2), text) == Decimal(value)

    @pytest.mark.parametrize(
        "text",
        ["100000000", "0.001", "1e8", "1e-3", "1e9999", "NaN", "Infinity", "1_0", "", "1" * 5000],
    )
    def test_other_texts_are_no_values(self, text):
        with pytest.raises(InvalidValue, match="is not a value of type decimal"):
            parse_decimal(DecimalType(10, 2), text)

    def test_every_digit_of_the_longest_counts(self):
        text = "12345678901234567890123456789012345.678"
        assert str(parse_decimal(DecimalType(38, 3), text)) == text

    @given(decimal_types, st.integers(-(10**40), 10**40), st.integers(-5, 45))
    def test_room_is_a_matter_of_digits(self, data_type, digits, scale):
        value = Decimal(f"{digits}E{-scale}")
        scaled = digits * 10 ** (data_type.scale + 45 - scale)
        expected = scaled % 10**45 == 0 and abs(scaled) < 10 ** (data_type.precision + 45)
        assert decimal_fits(data_type, value) == expected

    def test_numbers_without_a_type(self):
        assert parse_number("1e-30") == Decimal("1e-30")


class TestDates:
    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("1970-01-01", dt.date(1970, 1, 1)),
            ("2020-2-9", dt.date(2020, 2, 9)),
            ("0001-01-01", dt.date(1, 1, 1)),
            ("9999-12-31", dt.date(9999, 12, 31)),
            ("2000-02-29", dt.date(2000, 2, 29)),
            ("+2000-02-29", dt.date(2000, 2, 29)),
        ],
    )
    def test_dates(self, text, value):
        assert parse_date(text) == value
        assert type(parse_date(text)) is dt.date

    @pytest.mark.parametrize("text", ["0000-01-01", "-0001-12-31", "+10000-01-01", "0000-02-29"])
    def test_years_that_python_lacks(self, text):
        with pytest.raises(UnrepresentableValue, match="outside the years 1 to 9999"):
            parse_date(text)

    @pytest.mark.parametrize(
        "text",
        [
            "", "2020", "2020-01", "2020-13-01", "2021-02-29", "2020-01-00", "2020-01-01 ",
            "20-01-01", "2020/01/01", "2020-01-01T00:00:00", "٢٠٢٠-01-01", "10000-02-30",
            "+10001-02-29", "12345678-01-01",
        ],
    )  # fmt: skip
    def test_what_is_no_date(self, text):
        with pytest.raises(InvalidValue, match="is not a value of type date") as caught:
            parse_date(text)
        assert not isinstance(caught.value, UnrepresentableValue)


class TestTimestamps:
    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("1970-01-01 00:00:00", utc(1970, 1, 1)),
            ("1970-01-01 00:00:00.123456", utc(1970, 1, 1, 0, 0, 0, 123456)),
            ("1970-01-01T00:00:00.123456Z", utc(1970, 1, 1, 0, 0, 0, 123456)),
            ("2020-01-01 08:09:10.001", utc(2020, 1, 1, 8, 9, 10, 1000)),
            ("2020-01-01 08:09:10.5", utc(2020, 1, 1, 8, 9, 10, 500_000)),
            ("2020-01-01 08:09:10.123456000", utc(2020, 1, 1, 8, 9, 10, 123456)),
            ("2020-01-01", utc(2020, 1, 1)),
            ("2020-1-1 8:09", utc(2020, 1, 1, 8, 9)),
            ("2000-01-01T00:00:00.000-08:00", utc(2000, 1, 1, 8)),
            ("2000-01-01T00:00:00+05:30", utc(1999, 12, 31, 18, 30)),
            ("2000-01-01T00:00:00+0530", utc(1999, 12, 31, 18, 30)),
            ("2000-01-01 00:00:00 UTC", utc(2000, 1, 1)),
            ("2000-01-01 00:00:00+18:00", utc(1999, 12, 31, 6)),
        ],
    )
    def test_timestamps(self, text, value):
        parsed = parse_timestamp(text, zone=dt.UTC)
        assert parsed == value
        assert parsed.tzinfo is dt.UTC

    def test_a_text_without_a_zone_means_the_given_one(self):
        zone = dt.timezone(dt.timedelta(hours=2))
        assert parse_timestamp("2000-01-01 02:00:00", zone=zone) == utc(2000, 1, 1)
        assert parse_timestamp("2000-01-01 02:00:00Z", zone=zone) == utc(2000, 1, 1, 2)

    def test_without_any_zone_it_is_no_instant(self):
        with pytest.raises(InvalidValue, match="does not say its time zone"):
            parse_timestamp("2000-01-01 02:00:00", zone=None)

    @pytest.mark.parametrize(
        "text",
        [
            "10000-01-01 00:00:00", "0000-01-01 00:00:00Z", "-0044-03-15 12:00:00",
            "0001-01-01 00:00:00+01:00", "9999-12-31 23:59:59-01:00",
        ],
    )  # fmt: skip
    def test_instants_that_python_lacks(self, text):
        with pytest.raises(UnrepresentableValue, match="outside the years 1 to 9999"):
            parse_timestamp(text, zone=dt.UTC)

    @pytest.mark.parametrize(
        "text",
        [
            "", "now", "2020-01-01 ", "2020-01-01Z", "2020-01-01 24:00:00", "2020-01-01 00:60:00",
            "2020-01-01 00:00:60", "2020-01-01 00:00:00.", "2020-01-01 00:00:00.1234567",
            "2020-01-01 00:00:00+19:00", "2020-01-01 00:00:00+18:01", "2020-01-01 00:00:00+01:60",
            "2020-01-01 00:00:00 Europe/Berlin", "2020-01-01 00:00:00\n", "1577836800",
            "2020-02-30 00:00:00", "12345-02-30 00:00:00",
        ],
    )  # fmt: skip
    def test_what_is_no_timestamp(self, text):
        with pytest.raises(InvalidValue, match="is not a value of type timestamp") as caught:
            parse_timestamp(text, zone=dt.UTC)
        assert not isinstance(caught.value, UnrepresentableValue)

    def test_local_times_have_no_zone(self):
        text = "2013-07-05 17:01:00.123456"
        assert parse_timestamp_ntz(text) == dt.datetime(2013, 7, 5, 17, 1, 0, 123456)
        assert parse_timestamp_ntz("2024-09-09") == dt.datetime(2024, 9, 9)
        for zoned in (f"{text}Z", f"{text}+01:00"):
            with pytest.raises(InvalidValue, match="is not a value of type timestamp_ntz"):
                parse_timestamp_ntz(zoned)
        with pytest.raises(UnrepresentableValue):
            parse_timestamp_ntz("12345-01-01 00:00:00")

    @given(st.datetimes(), st.sampled_from([" ", "T"]))
    def test_pythons_own_spelling_is_read(self, value, separator):
        assert parse_timestamp_ntz(value.isoformat(sep=separator)) == value
        aware = value.replace(tzinfo=dt.UTC)
        assert parse_timestamp(aware.isoformat(sep=separator), zone=None) == aware

    @given(st.text())
    def test_no_text_is_any_other_error(self, text):
        for parse in (parse_date, parse_timestamp_ntz, parse_double, parse_number, parse_boolean):
            with pytest.raises(InvalidValue):
                parse(text + "?")
