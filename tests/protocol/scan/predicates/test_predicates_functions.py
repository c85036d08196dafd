"""Predicates over partition values: patterns, and Spark's functions of text, dates and times."""

import pytest

from tests.protocol.judging import UNDECIDED, check


class TestLike:
    @pytest.mark.parametrize(
        ("pattern", "value", "expected"),
        [
            ("'abc'", "abc", True),
            ("'abc'", "abcd", False),
            ("'a%'", "abc", True),
            ("'a%'", "a", True),
            ("'%c'", "abc", True),
            ("'%b%'", "abc", True),
            ("'%b%'", "ac", False),
            ("'a_c'", "abc", True),
            ("'a_c'", "ac", False),
            ("'_'", "é", True),
            ("'_'", "😀", True),
            ("'a%b%c'", "a1b2b3c", True),
            ("'a%b%c'", "a1c2b", False),
            ("'%a%a%'", "a", False),
            ("'%ab%b'", "ab", False),
            ("'%_b_%'", "abc", True),
            ("'%'", "\n", True),
            ("'a.c'", "abc", False),
            ("'[a]'", "a", False),
            ("'a\\\\%c'", "a%c", True),
            ("'a\\\\%c'", "abc", False),
            ("'a\\%c'", "a%c", True),
            ("'a\\\\_c'", "a_c", True),
            ("'a\\\\\\\\c'", "a\\c", True),
            ("'a!%c' ESCAPE '!'", "a%c", True),
            ("'a!%c' ESCAPE '!'", "abc", False),
            ("'a!!' ESCAPE '!'", "a!", True),
            ("'ab%' ESCAPE 'b'", "a%", True),
            ("x", "%", True),
            ("substring('%%', 1, 1)", "abc", True),
            ("NULL", "a", None),
            # Spark refuses these.
            ("'a\\\\b'", "ab", UNDECIDED),
            ("'a!' ESCAPE '!'", "a!", UNDECIDED),
        ],
    )
    def test_patterns(self, pattern, value, expected):
        check(f"x LIKE {pattern}", value, "string", expected)
        check(f"x LIKE {pattern}", None, "string", None)
        opposite = expected if expected in (None, UNDECIDED) else not expected
        check(f"x NOT LIKE {pattern}", value, "string", opposite)

    def test_other_types_are_cast_to_text(self):
        check("x LIKE '2024-01-%'", "2024-01-31", "date", True)
        check("x LIKE '1_'", "12", "integer", True)
        check("x LIKE 't%'", "true", "boolean", True)
        check("x LIKE '1%'", "1.0", "double", UNDECIDED)

    def test_as_a_function(self):
        check("like(x, 'a%')", "abc", "string", True)

    def test_a_long_piece_is_not_looked_for_at_each_place_of_a_long_text(self):
        """Both bounded, they would take a tenth of a second for each partition."""
        check(f"x LIKE '%_{'a' * 80}b%'", "a" * 200, "string", False)
        check(f"x LIKE '%_{'a' * 500}b%'", "a" * 1000, "string", False)
        check(f"x LIKE '%{'a' * 500}b%'", "a" * 1000, "string", False)

    @pytest.mark.parametrize(
        ("pattern", "value", "expected"),
        [
            ("%a_b%", "aaxb", True),
            ("%a_b%", "ab" * 400, False),
            ("%a_b%", "ab" * 3000, UNDECIDED),
            ("%a_b%", "ab" * 3000 + "a-b", UNDECIDED),
            ("%a_b%", "ab" * 300 + "a-b", True),
            ("%a_b%", "a" * 9000, False),
            ("%a_b_c%", "abxcb-acb-c", True),
            ("%ab_ab%ab_", "abab-abXab-ab-", True),
            ("%ab_ab%ab_", "abab-abXab-a-", False),
            ("%%%a%%", "bab", True),
            ("_%_", "a", False),
            ("_%_", "ab", True),
        ],
    )
    def test_pieces_with_gaps(self, pattern, value, expected):
        check(f"x LIKE '{pattern}'", value, "string", expected)

    def test_a_pattern_that_is_computed_is_short(self):
        """Each row has its own made."""
        check("'a' LIKE x", "%" * 255 + "a", "string", True)
        check("'a' LIKE x", "%" * 256 + "a", "string", UNDECIDED)
        check(f"'a' LIKE '{'%' * 256}a'", "", "string", True)


class TestText:
    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("substring(x, 2) = 'bc'", "abc"),
            ("substring(x, 1, 1) = 'a'", "abc"),
            ("substring(x, 0, 1) = 'a'", "abc"),
            ("substring(x, -2, 1) = 'b'", "abc"),
            ("substring(x, -5, 3) = 'a'", "abc"),
            ("substring(x, 9) = ''", "abc"),
            ("substring(x, 2, -1) = ''", "abc"),
            ("substr(x, 2, 1) = 'b'", "abc"),
            ("substring(x FROM 2 FOR 1) = 'b'", "abc"),
            ("startswith(x, 'ab')", "abc"),
            ("startswith(x, NULL) IS NULL", "abc"),
            ("string(x) = 'abc'", "abc"),
        ],
    )
    def test_known_values(self, text, value):
        check(text, value, "string", True)

    def test_of_other_types(self):
        check("substring(x, 1, 1) = '1'", "123", "integer", True)
        check("substring(x, 1, 4) = '1.50'", "1.5", "decimal(10,2)", True)
        check("substring(x, 1, 3) = '1.0'", "1.0", "double", UNDECIDED)

    @pytest.mark.parametrize(
        "text",
        [
            "upper(x) = 'É'",
            "length(x) = 1",
            "concat(x, 'a') = 'éa'",
            "x || 'a' = 'éa'",
            "trim(x) = 'é'",
            "TRIM(BOTH FROM x) = 'é'",
            "contains(x, 'é')",
            "x RLIKE 'é'",
            "x REGEXP 'é'",
            "regexp_like(x, 'é')",
            "x ILIKE 'é'",
            "x ILIKE 'É!' ESCAPE '!'",
            "substring(x, '1') = 'é'",
            "trim('a' FROM x) = 'é'",
            "trim(LEADING 'a' FROM x) = 'é'",
            "trim(x, 'a') = 'é'",
            "substring(x) = 'é'",
            "md5(x) = 'é'",
            "reverse(x) = 'é'",
            "x COLLATE UTF8_LCASE = 'É'",
        ],
    )
    def test_what_is_not_evaluated_here(self, text):
        check(text, "é", "string", UNDECIDED)


class TestDates:
    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("year(x) = 2024", "2024-02-29"),
            ("quarter(x) = 1", "2024-02-29"),
            ("month(x) = 2", "2024-02-29"),
            ("day(x) = 29", "2024-02-29"),
            ("dayofmonth(x) = 29", "2024-02-29"),
            ("dayofyear(x) = 60", "2024-02-29"),
            ("dayofweek(x) = 5", "2024-02-29"),
            ("weekday(x) = 3", "2024-02-29"),
            ("weekofyear(x) = 9", "2024-02-29"),
            ("weekofyear(x) = 1", "2024-12-30"),
            ("EXTRACT(YEAR FROM x) = 2024", "2024-02-29"),
            ("extract(month FROM x) = 2", "2024-02-29"),
            ("date_add(x, 1) = DATE '2024-03-01'", "2024-02-29"),
            ("dateadd(x, 1) = '2024-03-01'", "2024-02-29"),
            ("date_sub(x, 29) = '2024-01-31'", "2024-02-29"),
            ("x + 1 = '2024-03-01'", "2024-02-29"),
            ("1 + x = '2024-03-01'", "2024-02-29"),
            ("x - 1 = '2024-02-28'", "2024-02-29"),
            ("trunc(x, 'YEAR') = '2024-01-01'", "2024-02-29"),
            ("trunc(x, 'quarter') = '2024-04-01'", "2024-06-30"),
            ("trunc(x, 'MM') = '2024-02-01'", "2024-02-29"),
            ("trunc(x, 'week') = '2024-02-26'", "2024-02-29"),
            ("to_date(x) = x", "2024-02-29"),
            ("date(x) = x", "2024-02-29"),
            ("timestamp(x) = TIMESTAMP '2024-02-29 00:00:00'", "2024-02-29"),
            ("hour(x) = 0", "2024-02-29"),
            ("date_add(x, NULL) IS NULL", "2024-02-29"),
        ],
    )
    def test_known_values(self, text, value):
        check(text, value, "date", True)
        check(
            text.split("=")[0] + " IS NULL" if "IS NULL" not in text else text, None, "date", True
        )

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("year(x) = 1969", "1969-12-31 23:59:59.999999"),
            ("hour(x) = 23", "1969-12-31 23:59:59.999999"),
            ("minute(x) = 59", "1969-12-31 23:59:59.999999"),
            ("second(x) = 59", "1969-12-31 23:59:59.999999"),
            ("extract(HOUR FROM x) = 23", "1969-12-31 23:59:59.999999"),
            ("to_date(x) = '1969-12-31'", "1969-12-31 23:59:59.999999"),
            ("date_trunc('YEAR', x) = '1969-01-01'", "1969-12-31 23:59:59.999999"),
            ("date_trunc('mon', x) = '1969-12-01'", "1969-12-31 23:59:59.999999"),
            ("date_trunc('WEEK', x) = '1969-12-29'", "1969-12-31 23:59:59.999999"),
            ("date_trunc('DD', x) = '1969-12-31'", "1969-12-31 23:59:59.999999"),
            ("date_trunc('HOUR', x) = '1969-12-31 23:00:00'", "1969-12-31 23:59:59.999999"),
            ("date_trunc('SECOND', x) = '1969-12-31 23:59:59'", "1969-12-31 23:59:59.999999"),
            (
                "date_trunc('MILLISECOND', x) = '1969-12-31 23:59:59.999'",
                "1969-12-31 23:59:59.999999",
            ),
        ],
    )
    def test_of_timestamps(self, text, value):
        check(text, value, "timestamp", True)
        check(text, value, "timestamp_ntz", True)

    def test_of_text(self):
        check("year(x) = 2024", "2024-02", "string", True)
        check("year(x) = 2024", "soon", "string", UNDECIDED)
        check("to_date(x) = DATE '2024-01-05'", "2024-1-5", "string", True)
        check("to_timestamp(x) >= '2024'", "2024-01-01 00:00:00", "string", True)

    @pytest.mark.parametrize(
        "text",
        [
            "to_date(x, 'yyyy-MM-dd') = x",
            "date_format(x, 'yyyy') = '2024'",
            "date_trunc('EON', x) = x",
            "trunc(x, 'DAY') = x",
            "extract(EPOCH FROM x) = 1",
            "extract(SECOND FROM x) = 0",
            "extract(DOW FROM x) = 5",
            "timestamp_ntz(x) = x",
            "date_add(DAY, 1, x) = x",
            "x + INTERVAL 1 DAY = x",
            "year(1) = 2024",
            "date_add(x, 9999999) > x",
            "add_months(x, 1) > x",
            "last_day(x) = x",
            "datediff(x, x) = 0",
            "date_add(x, 1.5) = x",
            "make_date(2024, 1, 1) = x",
            "current_date() = x",
            "x < now()",
        ],
    )
    def test_what_is_not_evaluated_here(self, text):
        check(text, "2024-02-29", "date", UNDECIDED)
