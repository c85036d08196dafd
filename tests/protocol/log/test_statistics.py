"""What a file's statistics prove, whichever writer wrote them."""

import datetime as dt
import json
import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_protocol.log.statistics import (
    FileStatistics,
    InvalidStatistics,
    statistics_of,
)
from tidegate_protocol.schema.table_schema import (
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
    VARIANT,
    ArrayType,
    DecimalType,
    StructType,
)
from tidegate_protocol.schema.values import to_float32

parse = FileStatistics.parse


def minimum(raw: str, data_type: object) -> object:
    return parse(f'{{"minValues":{{"c":{raw}}}}}').minimum(("c",), data_type)


def maximum(raw: str, data_type: object) -> object:
    return parse(f'{{"maxValues":{{"c":{raw}}}}}').maximum(("c",), data_type)


def utc(*parts: int) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=dt.UTC)


class TestObject:
    def test_nothing_is_known_of_an_empty_one(self):
        statistics = parse("{}")
        assert statistics.num_records is None
        assert statistics.tight_bounds
        assert statistics.minimum(("c",), LONG) is None
        assert statistics.maximum(("c",), LONG) is None
        assert statistics.null_count(("c",)) is None
        assert not statistics.all_null(("c",))
        assert not statistics.no_null(("c",))

    def test_nulls_are_as_good_as_absence(self):
        nulls = dict.fromkeys(["numRecords", "tightBounds", "minValues", "maxValues", "nullCount"])
        statistics = parse(json.dumps(nulls))
        assert statistics.num_records is None
        assert statistics.tight_bounds
        assert statistics.minimum(("c",), LONG) is None

    def test_bounds_are_wide_only_where_that_is_said(self):
        assert parse('{"tightBounds":true}').tight_bounds
        assert not parse('{"tightBounds":false}').tight_bounds

    def test_unknown_statistics_are_passed_over(self):
        assert parse('{"numRecords":2,"distinct":{"c":[1]}}').num_records == 2

    @pytest.mark.parametrize(
        "text",
        [
            "", "nonsense", "null", "[]", '{"numRecords":1', '{"numRecords":"1"}',
            '{"numRecords":1.5}', '{"numRecords":-1}', '{"tightBounds":1}', '{"minValues":[]}',
            '{"maxValues":5}', '{"nullCount":"x"}', '{"minValues":{"c":"\\ud800"}}',
            '{"minValues":{"c":NaN}}', '"\ud800"',
            '{"x":' + "[" * 100_000 + "]" * 100_000 + "}",
        ],
    )  # fmt: skip
    def test_what_is_no_statistics_object(self, text):
        with pytest.raises(InvalidStatistics) as caught:
            parse(text)
        assert len(str(caught.value)) < 400
        assert statistics_of(text) is None

    def test_absent_statistics_prove_nothing(self):
        assert statistics_of(None) is None
        known = statistics_of('{"numRecords":1}')
        assert known is not None
        assert known.num_records == 1

    @given(st.text())
    def test_no_text_is_any_other_error(self, text):
        assert statistics_of(text) is None or text.lstrip().startswith("{")


class TestColumns:
    NESTED = '{"minValues":{"a":{"b":{"c":5}},"a.b":7,"A":9}}'

    def test_a_nested_column_is_found_by_its_path(self):
        statistics = parse(self.NESTED)
        assert statistics.minimum(("a", "b", "c"), LONG) == 5
        assert statistics.minimum(["a", "b", "c"], LONG) == 5
        assert statistics.minimum(("a.b",), LONG) == 7

    def test_physical_names_have_their_case(self):
        assert parse(self.NESTED).minimum(("A",), LONG) == 9

    @pytest.mark.parametrize("path", [(), ("x",), ("a",), ("a", "x"), ("a", "b", "c", "d")])
    def test_other_paths_are_unknown(self, path):
        assert parse(self.NESTED).minimum(path, LONG) is None

    def test_depth_is_unknown_wherever_it_is_asked_for(self):
        """How deep can be read goes by how deep the caller is."""

        def asked(above: int) -> object:
            return asked(above - 1) if above else statistics.minimum(("a", "b"), LONG)

        for depth in range(800, 1000):
            found = statistics_of('{"minValues":{"a":' + "[" * depth + "]" * depth + "}}")
            if found is not None:
                statistics = found
                assert asked(300) is None

    def test_statistics_may_be_asked_for_again(self):
        statistics = parse(self.NESTED)
        assert [statistics.minimum(("a.b",), LONG) for _ in range(2)] == [7, 7]


class TestBounds:
    @pytest.mark.parametrize(
        ("data_type", "raw", "value"),
        [
            (BYTE, "-128", -128),
            (SHORT, "5", 5),
            (INTEGER, "0", 0),
            (LONG, "9223372036854775807", 2**63 - 1),
            (BOOLEAN, "false", False),
            (STRING, '"a\\u0000\\u00e4"', "a\0ä"),
            (STRING, '""', ""),
            (DATE, '"1970-02-16"', dt.date(1970, 2, 16)),
            (DecimalType(10, 2), "123.45", Decimal("123.45")),
            (DecimalType(15, 2), "5", Decimal(5)),
        ],
    )
    def test_what_is_exact_is_taken_as_it_is(self, data_type, raw, value):
        for found in (minimum(raw, data_type), maximum(raw, data_type)):
            assert found == value
            assert type(found) is type(value)

    @pytest.mark.parametrize(
        ("data_type", "raw"),
        [
            (LONG, "null"),
            (LONG, '"5"'),
            (LONG, "5.0"),
            (LONG, "5e0"),
            (LONG, "9223372036854775808"),
            (LONG, "1" + "0" * 5000),
            (LONG, "{}"),
            (LONG, "[1]"),
            (BYTE, "128"),
            (DOUBLE, '"much"'),
            (DOUBLE, "true"),
            (BOOLEAN, '"true"'),
            (STRING, "5"),
            (STRING, "null"),
            (DATE, '"+12345-01-01"'),
            (DATE, "5"),
            (TIMESTAMP, '"2020-01-01 00:00:00.000"'),
            (TIMESTAMP, '"12345-01-01T00:00:00.000Z"'),
            (TIMESTAMP_NTZ, '"2020-01-01T00:00:00.000Z"'),
            (DecimalType(10, 2), '"5"'),
            (DecimalType(10, 2), "1e99999"),
            (BINARY, '"abc"'),
            (VARIANT, '"0S&u501fk+ze0(tB98CpzF6vU0rJl95HpNdvjbtatpi(cu0wW^cTu"'),
            (ArrayType(element=LONG, contains_null=True), "5"),
            (StructType(fields=()), "{}"),
        ],
    )
    def test_what_cannot_be_read_says_nothing(self, data_type, raw):
        assert minimum(raw, data_type) is None
        assert maximum(raw, data_type) is None

    def test_of_a_very_long_one_nothing_is_known(self):
        """Each predicate of a scan reads it anew."""
        longest = "a" * (16 * 1024 - 2)
        assert minimum(f'"{longest}"', STRING) == longest
        assert minimum(f'"{longest}a"', STRING) is None
        assert maximum(f'"{longest}a"', STRING) is None

    def test_minima_of_timestamps_hold_and_maxima_are_a_millisecond_higher(self):
        raw = '"2000-01-01T00:00:00.456-08:00"'
        assert minimum(raw, TIMESTAMP) == utc(2000, 1, 1, 8, 0, 0, 456_000)
        assert maximum(raw, TIMESTAMP) == utc(2000, 1, 1, 8, 0, 0, 457_000)
        local = '"1970-01-03 17:03:54.000"'
        assert minimum(local, TIMESTAMP_NTZ) == dt.datetime(1970, 1, 3, 17, 3, 54)
        assert maximum(local, TIMESTAMP_NTZ) == dt.datetime(1970, 1, 3, 17, 3, 54, 1000)

    def test_there_is_no_maximum_beyond_the_last_timestamp(self):
        raw = '"9999-12-31T23:59:59.999Z"'
        assert minimum(raw, TIMESTAMP) == utc(9999, 12, 31, 23, 59, 59, 999_000)
        assert maximum(raw, TIMESTAMP) is None

    @given(st.datetimes(dt.datetime(1583, 1, 1), dt.datetime(9999, 12, 31)))
    def test_a_timestamp_lies_within_what_writers_cut_off(self, value):
        cut = value.isoformat(timespec="milliseconds")
        assert minimum(f'"{cut}"', TIMESTAMP_NTZ) <= value < maximum(f'"{cut}"', TIMESTAMP_NTZ)
        aware = value.replace(tzinfo=dt.UTC)
        assert minimum(f'"{cut}Z"', TIMESTAMP) <= aware < maximum(f'"{cut}Z"', TIMESTAMP)

    def test_maxima_of_floating_point_numbers_may_hide_nan(self):
        for data_type in (FLOAT, DOUBLE):
            assert maximum("5.5", data_type) is None
            assert minimum("5.5", data_type) == 5.5

    def test_infinities_are_bounds_and_nan_is_none(self):
        assert minimum('"-Infinity"', DOUBLE) == -math.inf
        assert minimum('"Infinity"', FLOAT) == math.inf
        assert minimum('"NaN"', DOUBLE) is None

    @given(st.floats(width=32, allow_nan=False, allow_infinity=False))
    def test_floats_are_found_however_many_digits_they_are_written_with(self, value):
        for text in (repr(value), f"{value:.9g}"):
            assert minimum(text, FLOAT) == value

    @given(st.integers(-(10**38) + 1, 10**38 - 1), st.integers(0, 38))
    def test_decimals_lie_within_what_is_left_of_them(self, digits, scale):
        data_type = DecimalType(38, scale)
        exact = Decimal(f"{digits}E-{scale}")
        divided = repr(float(digits) / 10.0**scale)
        multiplied = repr(float(digits) * 10.0**-scale)
        for text in (divided, multiplied, f"{exact:f}"):
            assert minimum(text, data_type) <= exact <= maximum(text, data_type)

    @given(st.integers(-(10**15) + 1, 10**15 - 1), st.integers(0, 15))
    def test_short_decimals_are_exact(self, digits, scale):
        exact = Decimal(f"{digits}E-{scale}")
        for text in (repr(float(digits) / 10.0**scale), f"{exact:f}"):
            assert minimum(text, DecimalType(15, scale)) == exact

    def test_a_decimal_that_another_writer_rounded_down(self):
        # deltalake 1.6.6 wrote this for a maximum of 99999999999999999.99.
        found = maximum("9.999999999999998e+16", DecimalType(19, 2))
        assert isinstance(found, Decimal)
        assert found >= Decimal("99999999999999999.99")

    def test_a_four_byte_bound_is_rounded_to_a_value_there_is(self):
        assert minimum("0.1", FLOAT) == to_float32(0.1) > 0.1


class TestNullCount:
    @staticmethod
    def of(count: object, *, tight: bool = True, records: int | None = 3) -> FileStatistics:
        stats = {"numRecords": records, "tightBounds": tight, "nullCount": {"c": count}}
        return parse(json.dumps(stats))

    @pytest.mark.parametrize(
        ("count", "tight", "known"),
        [
            (0, True, 0), (1, True, 1), (3, True, 3),
            (0, False, 0), (1, False, None), (3, False, 3),
            (-1, True, None), (None, True, None), (1.5, True, None), ("1", True, None),
            (True, True, None), ({}, True, None),
        ],
    )  # fmt: skip
    def test_wide_bounds_know_only_none_and_all(self, count, tight, known):
        assert self.of(count, tight=tight).null_count(("c",)) == known

    @pytest.mark.parametrize("tight", [True, False])
    def test_what_it_proves(self, tight):
        path = ("c",)
        none, some, every = (self.of(count, tight=tight) for count in (0, 1, 3))
        assert [s.no_null(path) for s in (none, some, every)] == [True, False, False]
        assert [s.all_null(path) for s in (none, some, every)] == [False, False, True]

    def test_without_a_number_of_records_all_is_unknown(self):
        statistics = self.of(3, records=None)
        assert not statistics.all_null(("c",))
        assert self.of(0, records=None).no_null(("c",))

    def test_a_file_without_rows_is_both(self):
        empty = self.of(0, records=0)
        assert empty.all_null(("c",))
        assert empty.no_null(("c",))
