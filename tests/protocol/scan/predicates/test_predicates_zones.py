"""Timestamps of partitions whose text says no zone: what readers of any zone may take them for."""

import datetime as dt
import json
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.actions import add
from tests.protocol.judging import UNDECIDED, check, matches, predicate, schema, truth
from tidegate_protocol.proposal.transaction import Reads
from tidegate_protocol.scan.pruning import pruning_of
from tidegate_protocol.scan.reads import ReadPredicates

LOCAL = "2024-03-01 12:00:00"
ZONES = [
    *("America/Los_Angeles", "Asia/Kolkata", "Pacific/Apia", "Europe/Berlin", "UTC"),
    # Before there were zones: of the sun's time, on the other side of the date line.
    *("America/Juneau", "Asia/Manila"),
]
OPERATORS = ("=", "<", "<=", ">", ">=", "<>", "<=>")


class TestAnInstant:
    """A predicate with points in time that are the same everywhere, from a session anywhere."""

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            # 18 hours either way, and no more.
            ("x = TIMESTAMP '2024-03-02 06:00:00Z'", UNDECIDED),
            ("x = TIMESTAMP '2024-03-02 06:00:00.000001Z'", False),
            ("x >= '2024-02-29 18:00:00+00:00'", True),
            ("x > '2024-02-29T18:00:00Z'", UNDECIDED),
            ("x IN ('2024-03-02 06:00:00UTC', '1999-01-01 00:00:00Z')", UNDECIDED),
            ("x IN (TIMESTAMP '2024-03-02 07:00:00Z', TIMESTAMP '2099-01-01 00:00:00Z')", False),
            ("x BETWEEN '2024-03-02 06:00:00Z' AND '2024-03-03 06:00:00Z'", UNDECIDED),
            ("x BETWEEN '2024-03-02 06:00:01Z' AND '2024-03-03 06:00:00Z'", False),
            ("CAST(x AS BIGINT) = 1709294400", UNDECIDED),
            ("x < CAST(1709359201 AS TIMESTAMP)", True),
            ("x < CAST(1709359200 AS TIMESTAMP)", UNDECIDED),
            # The time of day is no longer known, the year is.
            ("hour(x) = 12 AND x > '2000-01-01 00:00:00Z'", UNDECIDED),
            ("year(x) = 2024 AND x > '2000-01-01 00:00:00Z'", True),
            ("x IS NOT NULL AND x > '2000-01-01 00:00:00Z'", True),
        ],
    )
    def test_may_be_18_hours_from_the_local_time(self, text, expected):
        check(text, LOCAL, "timestamp", expected)

    @pytest.mark.parametrize("zone", ["Z", "+00:00", " UTC"])
    def test_is_what_a_value_with_a_zone_says(self, zone):
        check("x = TIMESTAMP '2024-03-01 12:00:00Z'", LOCAL + zone, "timestamp", True)
        check("x > TIMESTAMP '2024-03-01 12:00:00Z'", LOCAL + zone, "timestamp", False)

    def test_is_not_beside_values_of_other_types(self):
        check("x > '2024-03-01 12:00:00Z'", None, "timestamp", None)
        check("x = '2024-03-01 12:00:00Z'", LOCAL, "string", False)

    def test_at_the_ends_of_the_calendar(self):
        for value, text in (
            ("9999-12-31 23:59:59", "year(x) = 9999 OR x < '2000-01-01 00:00:00Z'"),
            ("0001-01-01 00:00:00", "date_trunc('YEAR', x) < '2000-01-01 00:00:00Z'"),
        ):
            assert matches(text, value, "timestamp")
            assert matches(f"NOT ({text})", value, "timestamp")

    @given(
        local=st.datetimes(dt.datetime(1800, 1, 1), dt.datetime(2200, 1, 1)),
        zone=st.sampled_from(ZONES).map(ZoneInfo),
        operator=st.sampled_from(OPERATORS),
        beside=st.timedeltas(dt.timedelta(hours=-40), dt.timedelta(hours=40)),
    )
    def test_of_any_session_may_match(self, local, zone, operator, beside):
        read = local.replace(tzinfo=zone).astimezone(dt.UTC)
        asked = read + beside
        text = f"x {operator} TIMESTAMP '{asked.replace(tzinfo=None).isoformat()}Z'"
        outcome = {
            **{"=": read == asked, "<=>": read == asked, "<>": read != asked},
            **{"<": read < asked, "<=": read <= asked, ">": read > asked, ">=": read >= asked},
        }[operator]
        value = local.isoformat(sep=" ")
        assert matches(text if outcome else f"NOT ({text})", value, "timestamp")


class TestALocalTime:
    """A predicate with times of the session's zone is of one at UTC, and so is what it reads."""

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("x > TIMESTAMP '2024-03-01 12:00:00'", False),
            ("x = '2024-03-01 12:00'", True),
            ("x IN ('2024-03-01 12:00:00', '1999-01-01')", True),
            ("hour(x) = 12", True),
            ("CAST(x AS DATE) = DATE '2024-03-01'", True),
        ],
    )
    def test_is_compared_at_utc(self, text, expected):
        check(text, LOCAL, "timestamp", expected)


class TestTwoColumns:
    def test_of_which_one_says_its_zone_are_compared_in_any(self):
        columns = {"x": "timestamp", "y": "timestamp"}
        for text in ("x = y", "CASE x WHEN y THEN true ELSE false END", "x BETWEEN y AND y"):
            found = predicate(text, columns, ["x", "y"])
            near, far = "2024-03-01T20:00:00Z", "2024-03-03T20:00:00Z"
            assert found.matches_partition({"x": LOCAL, "y": near})
            assert not found.matches_partition({"x": LOCAL, "y": far})


class TestFiles:
    """Whoever prunes by it, and whoever judges conflicts by it, keeps what may match."""

    NEAR, FAR = "x = '2024-03-01 20:00:00Z'", "x = '2024-03-03 20:00:00Z'"

    @pytest.mark.parametrize(("text", "expected"), [(NEAR, True), (FAR, False)])
    def test_of_a_scan(self, text, expected):
        found = pruning_of([predicate(text, "timestamp")])
        partition = json.dumps({"x": LOCAL})
        assert found.needs_partition(partition) is expected
        assert found.needed([partition], [None]) == ([0] if expected else [])
        exact = json.dumps({"x": LOCAL + "Z"})
        assert not found.needs_partition(exact)

    @pytest.mark.parametrize(("text", "expected"), [(NEAR, "local"), (FAR, None)])
    @pytest.mark.parametrize("use_statistics", [True, False])
    def test_of_a_winner(self, text, expected, use_statistics):
        reads = ReadPredicates.parse(
            Reads(predicates=[text]), schema({"x": "timestamp", "v": "integer"}), ["x"]
        )
        added = [add("exact", {"x": LOCAL + "Z"}), add("local", {"x": LOCAL})]
        found = reads.first_match(added, use_statistics=use_statistics)
        assert (None if found is None else found.path) == expected
        covered = list(reads.covered([(("x", LOCAL),), (("x", LOCAL + "Z"),)]))
        assert covered == ([(("x", LOCAL),)] if expected else [])


def test_a_null_is_one_in_any_zone():
    assert truth("x IS NULL OR x > '2024-03-01 12:00:00Z'", "", "timestamp") is True
