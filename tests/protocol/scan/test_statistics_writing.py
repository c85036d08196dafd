"""Statistics that we write: what Delta would write, and what readers may trust."""

import datetime as dt
import json
import math
from decimal import Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.protocol.strategies import stored_primitives, values
from tidegate_protocol.features.properties import TableProperties
from tidegate_protocol.log.statistics import FileStatistics
from tidegate_protocol.scan.statistics_writing import (
    ColumnStatistics,
    build_statistics,
    statistics_columns,
    truncate_maximum,
    truncate_minimum,
)
from tidegate_protocol.schema.table_schema import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    DecimalType,
    Field,
    StructType,
)
from tidegate_protocol.schema.values import to_float32

LAST = "\U0010ffff"
SMILE = "\U0001f600"


def is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


class TestTruncation:
    @pytest.mark.parametrize(
        ("text", "length", "minimum", "maximum"),
        [
            ("", 2, "", ""),
            ("ab", 2, "ab", "ab"),
            ("abc", 2, "ab", "ab\x7f"),
            ("ab\x7fd", 2, "ab", f"ab{LAST}"),
            ("abä", 2, "ab", f"ab{LAST}"),
            (f"ab{LAST}", 2, "ab", f"ab{LAST}"),
            (f"ab{LAST}c", 2, "ab", f"ab{LAST}\x7f"),
            (f"ab{LAST}{LAST}", 2, "ab", None),
            (f"{SMILE}bcd", 2, f"{SMILE}b", f"{SMILE}\x7f"),
            # A pair of units is not torn apart.
            (f"a{SMILE}bc", 2, f"a{SMILE}", f"a{SMILE}\x7f"),
            (f"a{SMILE}", 2, f"a{SMILE}", f"a{SMILE}"),
            ("abc", 0, "", None),
            ("", 0, "", ""),
        ],
    )
    def test_bounds_are_those_of_delta(self, text, length, minimum, maximum):
        assert truncate_minimum(text, length) == minimum
        assert truncate_maximum(text, length) == maximum

    def test_the_default_length(self):
        assert truncate_minimum("a" * 40) == "a" * 32
        assert truncate_maximum("a" * 40) == "a" * 32 + "\x7f"
        assert truncate_maximum("a" * 32) == "a" * 32

    @given(st.text("ab\x7fä\uffff" + SMILE + LAST), st.integers(0, 5))
    def test_bounds_hold_in_the_order_of_bytes(self, text, length):
        low, high = truncate_minimum(text, length), truncate_maximum(text, length)
        assert low.encode() <= text.encode()
        assert len(low) <= length
        if high is not None:
            assert text.encode() <= high.encode()
            assert len(high.encode("utf-16-le")) // 2 <= 2 * length + 2


class TestColumns:
    SCHEMA = StructType(
        fields=(
            Field(name="p", type=LONG),
            Field(name="a", type=LONG),
            Field(
                name="S",
                type=StructType(fields=(Field(name="x", type=LONG), Field(name="y", type=STRING))),
            ),
            Field(name="l", type=ArrayType(element=LONG, contains_null=True)),
            Field(name="z", type=BINARY),
        )
    )

    def paths(self, **configuration: str) -> list[str]:
        properties = TableProperties.parse(
            {f"delta.dataSkipping{name}": value for name, value in configuration.items()}
        )
        leaves = statistics_columns(self.SCHEMA, properties, ["P"])
        return [".".join(leaf.path) for leaf in leaves]

    @pytest.mark.parametrize(
        ("configuration", "paths"),
        [
            ({}, ["a", "S.x", "S.y", "l", "z"]),
            ({"NumIndexedCols": "-1"}, ["a", "S.x", "S.y", "l", "z"]),
            ({"NumIndexedCols": "2"}, ["a", "S.x"]),
            ({"NumIndexedCols": "0"}, []),
            ({"StatsColumns": ""}, []),
            ({"StatsColumns": "z,A"}, ["a", "z"]),
            ({"StatsColumns": "s"}, ["S.x", "S.y"]),
            ({"StatsColumns": "s.Y,p,missing,a.b"}, ["S.y"]),
            ({"StatsColumns": "z", "NumIndexedCols": "1"}, ["z"]),
        ],
    )
    def test_which_columns_have_statistics(self, configuration, paths):
        assert self.paths(**configuration) == paths


class TestText:
    def test_the_text_as_a_whole(self):
        text = build_statistics(
            3,
            {
                ("id",): ColumnStatistics(type=LONG, minimum=1, maximum=9, null_count=0),
                ("s", "x"): ColumnStatistics(type=STRING, minimum="a", maximum="b", null_count=1),
                ("s", "y"): ColumnStatistics(type=LONG, null_count=3),
                ("l",): ColumnStatistics(type=ArrayType(element=LONG, contains_null=True)),
            },
            tight_bounds=True,
        )
        assert text == (
            '{"numRecords":3,"minValues":{"id":1,"s":{"x":"a"}},"maxValues":{"id":9,"s":{"x":"b"}},'
            '"nullCount":{"id":0,"s":{"x":1,"y":3}},"tightBounds":true}'
        )

    def test_bounds_are_said_to_be_tight_only_on_demand(self):
        assert "tightBounds" not in build_statistics(1, {})
        assert '"tightBounds":false' in build_statistics(1, {}, tight_bounds=False)

    @pytest.mark.parametrize(
        ("data_type", "value", "raw"),
        [
            (DOUBLE, 4.661261177e7, "4.661261177E7"),
            (FLOAT, 0.23399999737739563, "0.234"),
            (DecimalType(38, 2), Decimal("123456789012345678901234567890.5"),
             "123456789012345678901234567890.50"),
            (DATE, dt.date(1970, 2, 16), '"1970-02-16"'),
            (TIMESTAMP, dt.datetime(1970, 1, 1, 6, 30, 23, 523999, tzinfo=dt.UTC),
             '"1970-01-01T06:30:23.523Z"'),
            (TIMESTAMP, dt.datetime(1970, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=-2))),
             '"1970-01-01T02:00:00.000Z"'),
            (TIMESTAMP_NTZ, dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
             '"1969-12-31T23:59:59.999"'),
        ],
    )  # fmt: skip
    def test_values_are_written_as_delta_does(self, data_type, value, raw):
        column = ColumnStatistics(type=data_type, minimum=value, maximum=value)
        text = build_statistics(1, {("c",): column})
        assert f'"minValues":{{"c":{raw}}},"maxValues":{{"c":{raw}}}' in text

    @pytest.mark.parametrize(
        ("data_type", "value"),
        [
            (BOOLEAN, True),
            (BINARY, b"a"),
            (DOUBLE, math.nan),
            (DOUBLE, math.inf),
            (FLOAT, -math.inf),
        ],
    )
    def test_some_values_are_no_bounds(self, data_type, value):
        column = ColumnStatistics(type=data_type, minimum=value, maximum=value, null_count=0)
        assert json.loads(build_statistics(1, {("c",): column})) == {
            "numRecords": 1,
            "minValues": {},
            "maxValues": {},
            "nullCount": {"c": 0},
        }

    def test_strings_are_cut_to_the_tables_length_and_dates_are_not(self):
        text = build_statistics(
            1,
            {
                ("s",): ColumnStatistics(type=STRING, minimum="abcdef", maximum="abcdef"),
                ("d",): ColumnStatistics(type=DATE, minimum=dt.date(2020, 1, 1)),
            },
            string_prefix_length=2,
        )
        assert json.loads(text)["minValues"] == {"s": "ab", "d": "2020-01-01"}
        assert json.loads(text)["maxValues"] == {"s": "ab\x7f"}

    def test_a_string_that_cannot_be_bounded_is_not(self):
        column = ColumnStatistics(type=STRING, minimum=LAST * 99, maximum=LAST * 99)
        stats = json.loads(build_statistics(1, {("c",): column}))
        assert stats["minValues"] == {"c": LAST * 32}
        assert stats["maxValues"] == {}

    @given(
        stored_primitives.flatmap(
            lambda data_type: st.tuples(st.just(data_type), st.lists(values(data_type), min_size=1))
        )
    )
    def test_what_is_read_back_holds_for_every_value(self, column):
        data_type, found = column
        numbers = [value for value in found if not is_nan(value)]
        assume(numbers)
        has_nan = len(numbers) < len(found)
        text = build_statistics(
            len(found),
            {
                ("c",): ColumnStatistics(
                    type=data_type,
                    minimum=min(numbers),
                    maximum=math.nan if has_nan else max(numbers),
                    null_count=0,
                )
            },
        )
        statistics = FileStatistics.parse(text)
        low = statistics.minimum(("c",), data_type)
        high = statistics.maximum(("c",), data_type)
        assert all((low is None or low <= value) for value in numbers)
        assert all((high is None or value <= high) for value in numbers)
        if data_type in (FLOAT, DOUBLE):
            # Their maxima are not read back.
            written = json.loads(text)["maxValues"].get("c", math.inf)
            assert max(numbers) <= (to_float32(written) if data_type == FLOAT else written)
        assert statistics.no_null(("c",))
        assert statistics.num_records == len(found)
