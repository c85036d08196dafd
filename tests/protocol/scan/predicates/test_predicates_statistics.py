"""Predicates over statistics: no only where it is proven that no row can match."""

import pytest

from tests.protocol.judging import predicate, statistics

COLUMNS = {
    "p": "integer",
    "i": "integer",
    "j": "long",
    "d": "double",
    "n": "decimal(10,2)",
    "s": "string",
    "b": "boolean",
    "day": "date",
    "t": "timestamp",
    "raw": "binary",
    "st": {
        "type": "struct",
        "fields": [{"name": "In", "type": "integer", "nullable": True, "metadata": {}}],
    },
}
LOW = {
    "i": 10, "j": 100, "d": 1.5, "n": 1.25, "s": "ba", "day": "2024-01-10",
    "t": "2024-01-10T00:00:00.000Z", "st": {"In": 10}, "b": False,
}  # fmt: skip
HIGH = {
    "i": 20, "j": 200, "d": 2.5, "n": 9.75, "s": "bz", "day": "2024-01-20",
    "t": "2024-01-20T00:00:00.000Z", "st": {"In": 20}, "b": False,
}  # fmt: skip
NONE = dict.fromkeys(LOW, 0) | {"st": {"In": 0}, "raw": 0}
SOME = dict.fromkeys(LOW, 3) | {"st": {"In": 3}, "raw": 3}
ALL = dict.fromkeys(LOW, 10) | {"st": {"In": 10}, "raw": 10}


def may_match(text, stats, p="1"):
    return predicate(text, COLUMNS, ["p"]).may_match({"p": p}, stats)


def over(text, nulls=NONE):
    return may_match(text, statistics(low=LOW, high=HIGH, nulls=nulls))


class TestRanges:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("i = 9", False),
            ("i = 10", True),
            ("i = 20", True),
            ("i = 21", False),
            ("i < 10", False),
            ("i <= 10", True),
            ("i > 20", False),
            ("i >= 20", True),
            ("9 = i", False),
            ("21 <= i", False),
            ("i <> 15", True),
            ("i <=> 9", False),
            ("i <=> NULL", False),
            ("i = NULL", False),
            ("i IN (1, 9, 21)", False),
            ("i IN (1, 15, 21)", True),
            ("i IN (1, NULL)", False),
            ("i NOT IN (1, 2)", True),
            ("i NOT IN (1, NULL)", False),
            ("i BETWEEN 1 AND 9", False),
            ("i BETWEEN 5 AND 10", True),
            ("i BETWEEN 21 AND 30", False),
            ("i NOT BETWEEN 10 AND 20", False),
            ("i NOT BETWEEN 11 AND 20", True),
            ("NOT i < 21", False),
            ("NOT (i >= 10 AND i <= 20)", False),
            ("i = 9 OR i = 21", False),
            ("i = 9 OR i = 15", True),
            ("i = 15 AND j = 9", False),
            ("(i = 9 AND j > 0) OR (i > 0 AND j = 9)", False),
            ("(i < 10) IS TRUE", False),
            ("(i < 10) IS NOT FALSE", False),
            ("(i < 10) IS NULL", False),
            ("i IS NULL", False),
            ("i IS NOT NULL", True),
            ("j = 99.5", False),
            ("j = 5000000000", False),
            ("j < 1e2", False),
            ("i = '9'", False),
            ("i > j", False),
            ("i < j", True),
            ("i = j", False),
            ("i + 1 > 21", False),
            ("i + 1 > 20", True),
            ("5 + i < 15", False),
            ("i - 10 < 0", False),
            ("CAST(i AS BIGINT) < 10", False),
            ("CAST(i AS STRING) < '0'", True),
            ("coalesce(i, 0) = 0", False),
            ("CASE WHEN i > 5 THEN i ELSE 0 END < 10", False),
            ("CASE WHEN i > 15 THEN 1 ELSE 2 END = 3", False),
            ("if(i > 30, 1, 2) = 1", False),
            ("d = 1", False),
            ("d < 1.5", False),
            # NaN is above all numbers, and not every writer counts it in.
            ("d > 2.5", True),
            ("d = 3", True),
            ("d > 1 AND d < 1.2", False),
            ("n = 1.24", False),
            ("n < 1.25", False),
            ("n >= 9.76", False),
            ("n > 9", True),
            ("s = 'a'", False),
            ("s = 'c'", False),
            ("s = 'bb'", True),
            ("s > 'bz'", False),
            ("s LIKE 'c%'", False),
            ("s LIKE 'b%'", True),
            ("s LIKE 'a%z'", False),
            ("s LIKE 'bza%'", False),
            ("s LIKE '%c'", True),
            ("s NOT LIKE 'b%'", False),
            ("s NOT LIKE 'b%z'", True),
            ("s NOT LIKE 'ba%'", True),
            ("s ILIKE 'c%'", True),
            ("s RLIKE '^c'", True),
            ("startswith(s, 'c')", False),
            ("NOT startswith(s, 'b')", False),
            ("s IN ('a', 'c')", False),
            ("b", False),
            ("NOT b", True),
            ("b = true", False),
            ("b IS TRUE", False),
            ("day < DATE '2024-01-10'", False),
            ("day = '2024-01-09'", False),
            ("day BETWEEN '2024-02-01' AND '2024-02-29'", False),
            ("year(day) = 2023", False),
            ("year(day) = 2024", True),
            ("month(day) = 2", True),
            ("trunc(day, 'MONTH') = '2024-02-01'", False),
            ("day + 20 < '2024-01-30'", False),
            ("date_add(day, 1) > '2024-01-21'", False),
            ("t > '2024-01-20 00:00:00.002'", False),
            # The log has milliseconds, rounded down.
            ("t > '2024-01-20 00:00:00.0009'", True),
            ("t < TIMESTAMP '2024-01-10 00:00:00'", False),
            ("to_date(t) = '2024-01-09'", False),
            ("date_trunc('DAY', t) < '2024-01-10'", False),
            ("t < DATE '2024-01-10'", False),
            ("st.in = 9", False),
            ("st.IN = 10", True),
            ("st IS NULL", True),
            ("raw = X'00'", True),
            ("raw IS NULL", False),
            ("my_udf(i)", True),
            ("i = 9 AND my_udf(i)", False),
            ("i = 9 OR rand() < 0.5", True),
            ("my_udf(i) = 1 OR i = 9", True),
            ("p = 1 AND i = 15", True),
            ("p = 2 AND i = 15", False),
            ("p = i", False),
            ("p + 9 = i", True),
        ],
    )
    def test_without_nulls(self, text, expected):
        assert over(text) is expected

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("i = 9", False),
            ("i IS NULL", True),
            ("i IS NOT NULL", True),
            ("i <=> NULL", True),
            ("NOT i < 21", False),
            ("(i < 10) IS NULL", True),
            ("(i < 10) IS NOT TRUE", True),
            ("(i < 21) IS NOT TRUE", True),
            ("(i < 21) IS FALSE", False),
            ("coalesce(i, 0) = 0", True),
            ("coalesce(i, 0) = 5", True),
            ("coalesce(i, 10) = 5", False),
            ("i NOT BETWEEN 10 AND 20", False),
            ("s NOT LIKE 'b%'", False),
            ("nullif(i, 30) IS NULL", True),
        ],
    )
    def test_with_nulls(self, text, expected):
        assert over(text, SOME) is expected

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("i = 15", False),
            ("NOT i = 15", False),
            ("i IS NULL", True),
            ("i IS NOT NULL", False),
            ("i <=> NULL", True),
            ("i IN (1, NULL)", False),
            ("i + 1 > 0", False),
            ("s LIKE '%'", False),
            ("raw = X'00'", False),
            ("i = 15 OR s = 'b'", False),
            ("coalesce(i, 7) = 7", True),
            ("coalesce(i, 7) = 8", False),
        ],
    )
    def test_with_nothing_but_nulls(self, text, expected):
        assert may_match(text, statistics(nulls=ALL)) is expected


class TestWhatIsNotKnown:
    @pytest.mark.parametrize(
        "text",
        ["i = 9", "i IS NULL", "i IS NOT NULL", "s LIKE 'c%'", "NOT i = 15", "i <=> NULL", "d < 0"],
    )
    def test_nothing(self, text):
        assert may_match(text, None)
        assert may_match(text, statistics())
        assert may_match(text, statistics(low={}, high={}, nulls={}))
        assert may_match(text, statistics(low={"i": "x", "s": 1, "d": None}, high={"i": []}))

    def test_one_bound(self):
        low_only = statistics(low={"i": 10})
        assert not may_match("i < 10", low_only)
        assert may_match("i > 1000000", low_only)
        assert may_match("i + 1 < 5", low_only)  # the largest of them may overflow
        high_only = statistics(high={"i": 20})
        assert not may_match("i > 20", high_only)
        assert may_match("i < -1000000", high_only)

    def test_nulls_alone(self):
        assert not may_match("i IS NULL", statistics(nulls={"i": 0}))
        assert may_match("i = 5", statistics(nulls={"i": 0}))

    def test_wide_bounds(self):
        # A deletion vector came after: the rows are fewer than the statistics say.
        wide = statistics(low=LOW, high=HIGH, nulls=SOME, tightBounds=False)
        assert not may_match("i = 9", wide)
        assert may_match("i IS NULL", wide)
        assert may_match("i IS NOT NULL", wide)
        assert not may_match("i IS NULL", statistics(nulls=NONE, tightBounds=False))
        assert not may_match("i IS NOT NULL", statistics(nulls=ALL, tightBounds=False))

    def test_values_beyond_the_type_of_a_constant(self):
        stats = statistics(low={"j": 9007199254740993}, high={"j": 9007199254740993})
        assert may_match("j = 9007199254740993", stats)
        assert not may_match("j = 9007199254740992", stats)
        # As an 8-byte number it is the same as its neighbour.
        assert may_match("j = 9007199254740992e0", stats)

    def test_columns_whose_text_is_compared_by_other_rules(self):
        for metadata in (
            {"__CHAR_VARCHAR_TYPE_STRING": "char(5)"},
            {"__COLLATIONS": {"s": "spark.UTF8_LCASE"}},
        ):
            parsed = predicate("s = 'a'", {"s": "string"}, [], **metadata)
            assert parsed.may_match({}, statistics(low={"s": "b"}, high={"s": "c"}))
            assert not parsed.may_match({}, statistics(nulls={"s": 10}))


class TestPartitionValues:
    def test_what_partitions_rule_out_statistics_do_not_bring_back(self):
        stats = statistics(low=LOW, high=HIGH, nulls=NONE)
        for text in ("p = 2", "p = 2 AND i = 15", "p IS NULL", "p = 2 AND my_udf(p)"):
            assert not predicate(text, COLUMNS, ["p"]).matches_partition({"p": "1"})
            assert not may_match(text, stats)
            assert not may_match(text, None)

    def test_more_is_seen_than_conflict_detection_looks_at(self):
        text = "(p = 1 AND i > 5) OR (p = 2 AND i < 3)"
        assert predicate(text, COLUMNS, ["p"]).matches_partition({"p": "3"})
        assert not may_match(text, None, p="3")
