"""Partition values: their text, there and back, and their folders."""

import datetime as dt
import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.protocol.strategies import STORED_PRIMITIVES, stored_primitives, typed
from tidegate_protocol.log import paths
from tidegate_protocol.schema.partition_values import (
    InvalidValue,
    UnrepresentableValue,
    parse_value,
    parser,
    partition_path,
    serialize_value,
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
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    ArrayType,
    DecimalType,
    StructType,
)


def same(left: object, right: object) -> bool:
    """Equal and of one type; NaN is itself."""
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    return type(left) is type(right) and left == right


class TestThereAndBack:
    @given(typed())
    def test_a_serialized_value_is_read_as_itself(self, pair):
        data_type, value = pair
        try:
            text = serialize_value(data_type, value)
        except InvalidValue:
            # Bytes that are no text are the only values without one.
            assert data_type == BINARY
            return
        if text is None:
            assert value in ("", b"")
        else:
            assert same(parse_value(data_type, text), value)

    @given(stored_primitives)
    def test_null_is_null_in_every_type(self, data_type):
        assert parse_value(data_type, None) is None
        assert parse_value(data_type, "") is None
        assert serialize_value(data_type, None) is None

    @given(stored_primitives, st.text())
    def test_no_text_is_any_other_error(self, data_type, text):
        try:
            value = parse_value(data_type, text)
        except InvalidValue as error:
            message = str(error)
        else:
            message = repr(value)
        assert message.isprintable()

    @pytest.mark.parametrize("data_type", STORED_PRIMITIVES)
    def test_a_parser_is_made_once_a_column(self, data_type):
        assert parser(data_type) is parser(data_type)

    @pytest.mark.parametrize(
        "data_type",
        [VARIANT, VOID, ArrayType(element=LONG, contains_null=True), StructType(fields=())],
    )
    def test_other_types_have_no_partition_values(self, data_type):
        with pytest.raises(InvalidValue, match="has no partition values"):
            parse_value(data_type, "x")
        with pytest.raises(InvalidValue, match="has no partition values"):
            serialize_value(data_type, "x")
        assert parse_value(data_type, None) is None


class TestText:
    @pytest.mark.parametrize(
        ("data_type", "value", "text"),
        [
            (BYTE, -128, "-128"),
            (LONG, 2**63 - 1, "9223372036854775807"),
            (BOOLEAN, True, "true"),
            (BOOLEAN, False, "false"),
            (STRING, "a=b/c", "a=b/c"),
            (STRING, " ", " "),
            (STRING, "", None),
            (BINARY, b"\x01\x02\x03", "\x01\x02\x03"),
            (BINARY, "ä".encode(), "ä"),
            (BINARY, b"", None),
            (DATE, dt.date(1, 2, 3), "0001-02-03"),
            (TIMESTAMP, dt.datetime(1970, 1, 1, tzinfo=dt.UTC), "1970-01-01T00:00:00.000000Z"),
            (
                TIMESTAMP,
                dt.datetime(1970, 1, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=2))),
                "1970-01-01T00:00:00.000000Z",
            ),
            (TIMESTAMP_NTZ, dt.datetime(1970, 1, 1), "1970-01-01 00:00:00"),
            (TIMESTAMP_NTZ, dt.datetime(1970, 1, 1, 0, 0, 0, 5), "1970-01-01 00:00:00.000005"),
            (DecimalType(5, 2), Decimal("1.5"), "1.50"),
            (DecimalType(5, 2), Decimal("-0"), "0.00"),
            (DecimalType(5, 0), Decimal("1E+4"), "10000"),
            (DecimalType(12, 5), Decimal("4E-5"), "0.00004"),
            (DecimalType(38, 4), Decimal(f"{'9' * 34}.9999"), f"{'9' * 34}.9999"),
            # As Double.toString and Float.toString of Java.
            (DOUBLE, 0.0, "0.0"),
            (DOUBLE, -0.0, "-0.0"),
            (DOUBLE, 1.0, "1.0"),
            (DOUBLE, 100.5, "100.5"),
            (DOUBLE, 9999999.0, "9999999.0"),
            (DOUBLE, 1e7, "1.0E7"),
            (DOUBLE, 12345678.9, "1.23456789E7"),
            (DOUBLE, -0.001, "-0.001"),
            (DOUBLE, 0.00099, "9.9E-4"),
            (DOUBLE, 1e16, "1.0E16"),
            (DOUBLE, 1.7976931348623157e308, "1.7976931348623157E308"),
            (DOUBLE, math.nan, "NaN"),
            (DOUBLE, math.inf, "Infinity"),
            (DOUBLE, -math.inf, "-Infinity"),
            (FLOAT, 0.10000000149011612, "0.1"),
            (FLOAT, 0.1, "0.1"),
            (FLOAT, 16777216.0, "1.6777216E7"),
            (FLOAT, 3.4028234663852886e38, "3.4028235E38"),
            (FLOAT, math.nan, "NaN"),
        ],
    )
    def test_how_values_are_written(self, data_type, value, text):
        assert serialize_value(data_type, value) == text

    @pytest.mark.parametrize(
        ("data_type", "value"),
        [
            (INTEGER, 2**31),
            (INTEGER, True),
            (INTEGER, 1.0),
            (INTEGER, "1"),
            (DOUBLE, 1),
            (FLOAT, 1),
            (BOOLEAN, 1),
            (STRING, b"a"),
            (STRING, "\ud800"),
            (BINARY, "a"),
            (BINARY, b"\xff"),
            (BINARY, b"\\u0041"),
            (DATE, dt.datetime(2020, 1, 1)),
            (DATE, "2020-01-01"),
            (TIMESTAMP, dt.datetime(2020, 1, 1)),
            (TIMESTAMP, dt.date(2020, 1, 1)),
            (TIMESTAMP, dt.datetime.max.replace(tzinfo=dt.timezone(-dt.timedelta(hours=1)))),
            (TIMESTAMP_NTZ, dt.datetime(2020, 1, 1, tzinfo=dt.UTC)),
            (DecimalType(5, 2), Decimal("1.005")),
            (DecimalType(5, 2), Decimal("1000")),
            (DecimalType(5, 2), Decimal("NaN")),
            (DecimalType(5, 2), 1.5),
        ],
    )
    def test_a_value_of_another_type_has_no_text(self, data_type, value):
        with pytest.raises(InvalidValue):
            serialize_value(data_type, value)

    def test_timestamps_without_a_zone_are_in_utc(self):
        assert parse_value(TIMESTAMP, "2020-01-01 01:02:03.456789") == dt.datetime(
            2020, 1, 1, 1, 2, 3, 456789, tzinfo=dt.UTC
        )

    def test_escaped_bytes_have_two_meanings_and_so_none(self):
        with pytest.raises(InvalidValue, match="may be bytes or their escapes"):
            parse_value(BINARY, "\\u0001\\u00FF")
        assert parse_value(BINARY, "\\u0001 ") == b"\\u0001 "

    def test_a_value_that_python_lacks_is_told_from_none(self):
        with pytest.raises(UnrepresentableValue):
            parse_value(DATE, "+12345-01-01")


class TestFolders:
    def test_one_folder_a_column_in_their_order(self):
        values = {"day": None, "month": "5", "name": ""}
        assert partition_path(values, ["month", "day", "name"]) == (
            "month=5/day=__HIVE_DEFAULT_PARTITION__/name=__HIVE_DEFAULT_PARTITION__"
        )

    def test_no_columns_no_folder(self):
        assert partition_path({}, []) == ""

    @pytest.mark.parametrize(
        ("text", "escaped"),
        [
            ("a/b: %=", "a%2Fb%3A %25%3D"),
            ("2020-01-01T00:00:00Z", "2020-01-01T00%3A00%3A00Z"),
            ("\0\x01\x1f\x7f", "%00%01%1F%7F"),
            ("\"#'*?\\[]^{", "%22%23%27%2A%3F%5C%5B%5D%5E%7B"),
            ("ä }<>|&,.~", "ä }<>|&,.~"),
        ],
    )
    def test_what_hive_escapes(self, text, escaped):
        assert partition_path({"p": text}, ["p"]) == f"p={escaped}"

    def test_names_are_escaped_too(self):
        assert partition_path({"a/b": "1"}, ["a/b"]) == "a%2Fb=1"

    @given(st.lists(st.text(max_size=20), min_size=1, max_size=4))
    def test_every_value_makes_an_allowed_path(self, texts):
        columns = [f"c{index}" for index in range(len(texts))]
        folder = partition_path(dict(zip(columns, texts, strict=True)), columns)
        path = paths.encode(f"{folder}/part-0.parquet")
        if len(path) <= paths.MAX_PATH_BYTES:
            paths.check(path)
        assert paths.decode(path).split("/")[:-1] == folder.split("/")
        assert folder.count("/") == len(columns) - 1
