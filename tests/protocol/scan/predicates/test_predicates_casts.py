"""Predicates over partition values: casts and arithmetic, as Spark does them."""

import pytest

from tests.protocol.judging import UNDECIDED, check


class TestCast:
    @pytest.mark.parametrize(
        ("type_", "text", "value", "expected"),
        [
            ("string", "CAST(x AS INT) = 10", "10", True),
            ("string", "x::int = 10", "10", True),
            ("string", "int(x) = 10", "10", True),
            ("string", "x::int < 11 AND x::int > 9", "10", True),
            ("string", "x::int < 9 AND x::int > 1", "10", False),
            ("string", "x::decimal(5, 1) < 11 AND 9 > 1", "10", True),
            ("string", "x::int::string::int = 10", "10", True),
            ("string", "CAST(x AS DOUBLE) = 1.5", "1.50", True),
            ("string", "CAST(x AS DOUBLE) > 1e9", "Infinity", True),
            ("string", "CAST(x AS DECIMAL(5, 1)) = 1.5", "1.45", True),
            ("string", "CAST(x AS DECIMAL) = 2", "1.5", True),
            ("string", "CAST(x AS BOOLEAN)", "yes", True),
            ("string", "CAST(x AS DATE) = DATE '2024-01-31'", "2024-01-31", True),
            (
                "string",
                "CAST(x AS TIMESTAMP) = TIMESTAMP '2024-01-31 00:00:00'",
                "2024-01-31",
                True,
            ),
            ("string", "CAST(x AS BINARY) = X'61'", "a", True),
            ("string", "CAST(x AS VARCHAR(2)) = 'abc'", "abc", True),
            ("integer", "CAST(x AS STRING) = '7'", "7", True),
            ("integer", "CAST(x AS BOOLEAN)", "7", True),
            ("integer", "CAST(x AS DECIMAL(3,1)) = 7", "7", True),
            ("integer", "CAST(x AS TINYINT) = 7", "7", True),
            ("integer", "CAST(x AS TIMESTAMP) = TIMESTAMP '1970-01-01 00:00:07'", "7", True),
            ("double", "CAST(x AS INT) = 1", "1.9", True),
            ("double", "CAST(x AS INT) = -1", "-1.9", True),
            ("double", "CAST(x AS DECIMAL(5,1)) = 2", "2.0", True),
            ("decimal(10,2)", "CAST(x AS INT) = 1", "1.99", True),
            ("decimal(10,2)", "CAST(x AS STRING) = '1.50'", "1.50", True),
            ("boolean", "CAST(x AS INT) = 1", "true", True),
            ("boolean", "CAST(x AS STRING) = 'true'", "true", True),
            ("date", "CAST(x AS STRING) = '2024-01-31'", "2024-01-31", True),
            (
                "timestamp",
                "CAST(x AS STRING) = '2024-01-31 00:00:00.5'",
                "2024-01-31 00:00:00.500",
                True,
            ),
            ("timestamp", "CAST(x AS DATE) = DATE '2024-01-31'", "2024-01-31 23:59:59", True),
            ("timestamp", "CAST(x AS DATE) = DATE '1969-12-31'", "1969-12-31 23:59:59", True),
            ("timestamp", "CAST(x AS BIGINT) = -1", "1969-12-31 23:59:59.5Z", True),
            ("binary", "CAST(x AS STRING) = 'aé'", "aé", True),
            ("string", "TRY_CAST(x AS INT) IS NULL", "abc", True),
            ("string", "TRY_CAST(x AS INT) = 5", "5", True),
            ("integer", "TRY_CAST(x AS TINYINT) IS NULL", "128", True),
            ("string", "TRY_CAST(x AS DATE) IS NULL", "2024-02-30", True),
            ("string", "TRY_CAST(x AS BOOLEAN) IS NULL", "maybe", True),
            ("double", "TRY_CAST(x AS INT) IS NULL", "NaN", True),
            ("decimal(10,2)", "TRY_CAST(x AS DECIMAL(3,2)) IS NULL", "10.00", True),
        ],
    )
    def test_known_values(self, type_, text, value, expected):
        check(text, value, type_, expected)

    @pytest.mark.parametrize(
        ("type_", "text", "value"),
        [
            ("string", "CAST(x AS INT) IS NULL", "abc"),
            ("string", "CAST(x AS INT) = 1", "1.5"),
            ("integer", "CAST(x AS TINYINT) = 44", "300"),
            ("double", "CAST(x AS INT) > 0", "1e10"),
            ("decimal(10,2)", "CAST(x AS DECIMAL(3,2)) IS NULL", "10.00"),
            ("string", "CAST(x AS DECIMAL(3,2)) IS NULL", "10"),
            ("double", "CAST(x AS STRING) = '0.1'", "0.1"),
            ("binary", "CAST(x AS INT) = 1", "a"),
            ("integer", "CAST(x AS DATE) IS NULL", "1"),
            ("integer", "CAST(x AS ARRAY<INT>) IS NULL", "1"),
            ("integer", "CAST(x AS STRUCT<a: INT, b: MAP<INT, INT>>) IS NULL", "1"),
            ("integer", "CAST(x AS money) = 1", "1"),
            ("integer", "x::array<int> IS NULL", "1"),
            ("integer", "x::array<array<int>> = x", "1"),
            ("integer", "CAST(x AS INTERVAL DAY TO SECOND) IS NULL", "1"),
            ("integer", "CAST(x AS STRING COLLATE UNICODE) = 'a'", "1"),
            ("integer", "CAST(x AS DECIMAL(99)) = 1", "1"),
            ("string", "TRY_CAST(x AS TIMESTAMP) IS NULL", "12:00"),
            ("string", "TRY_CAST(x AS DOUBLE) IS NULL", "0x1p3"),
            # Spark puts a day in the place of these.
            ("date", "x = TRY_CAST('today' AS DATE)", "2024-01-31"),
            ("date", "x = TRY_CAST(' Yesterday CET' AS DATE)", "2024-01-31"),
            ("date", "x = TRY_CAST('now' AS DATE)", "2024-01-31"),
        ],
    )
    def test_what_is_not_certain_is_not_decided(self, type_, text, value):
        check(text, value, type_, UNDECIDED)

    def test_null_stays_null(self):
        for type_ in ("INT", "STRING", "DATE", "DECIMAL(38,38)", "BOOLEAN"):
            check(f"CAST(x AS {type_}) IS NULL", None, "string", True)
            check(f"CAST(NULL AS {type_}) IS NULL", None, "string", True)


class TestArithmetic:
    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("x + 1 = 8", "7"),
            ("x - 1 = 6", "7"),
            ("x * 2 = 14", "7"),
            ("x / 2 = 3.5", "7"),
            ("x % 4 = 3", "7"),
            ("x % 4 = -3", "-7"),
            ("x DIV 2 = 3", "7"),
            ("x DIV 2 = -3", "-7"),
            ("-x = -7", "7"),
            ("x + 0.5 = 7.5", "7"),
            ("x * 1.5 = 10.5", "7"),
            ("x / 3.0 = 2.333333", "7"),
            ("x % 2.5 = 2.0", "7"),
            ("x + 1e0 = 8", "7"),
            ("x + 1L = 8", "7"),
            ("1 + x * 2 = 15", "7"),
            ("(x + NULL) IS NULL", "7"),
            ("x + 1 IS NULL", None),
        ],
    )
    def test_known_values(self, text, value):
        check(text, value, "integer", True)

    @pytest.mark.parametrize(
        ("type_", "text", "value"),
        [
            ("integer", "x + 1 IS NULL", "2147483647"),
            ("integer", "x * x < 0", "65536"),
            ("integer", "-x = x", "-2147483648"),
            ("integer", "abs(x) < 0", "-2147483648"),
            ("byte", "x + 1Y < 0", "127"),
            ("long", "x - 1 > 0", "-9223372036854775808"),
            ("integer", "1 / x IS NULL", "0"),
            ("integer", "1 % x IS NULL", "0"),
            ("integer", "1 DIV x IS NULL", "0"),
            ("double", "1 / x > 0", "0.0"),
            ("decimal(10,2)", "1 / x IS NULL", "0.00"),
            ("decimal(38,0)", "x * x IS NULL", "9" * 38),
            # Spark takes text for another number in each mode.
            ("integer", "x + '1' = 2", "1"),
            ("float", "x + 1 = 2", "1.0"),
        ],
    )
    def test_overflow_and_division_by_zero_are_not_decided(self, type_, text, value):
        check(text, value, type_, UNDECIDED)

    @pytest.mark.parametrize(
        ("type_", "text", "value"),
        [
            ("decimal(10,2)", "x + 0.005 = 1.505", "1.50"),
            ("decimal(10,2)", "x / 3 = 0.500000000000", "1.50"),
            ("decimal(10,2)", "x * x = 2.25", "1.50"),
            ("decimal(10,2)", "x DIV 1 = 1", "1.50"),
            ("decimal(10,2)", "-x = -1.5", "1.50"),
            ("decimal(38,10)", "x + 0.1 = 1.6", "1.5"),
            ("float", "x + x = 0.2F", "0.1"),
            ("double", "x * 3 = 0.30000000000000004", "0.1"),
            ("double", "x % 1 = 0.5", "1.5"),
        ],
    )
    def test_results_are_rounded_as_their_type_is(self, type_, text, value):
        check(text, value, type_, True)
