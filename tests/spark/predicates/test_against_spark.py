"""Predicates judged beside Spark itself, in both of its modes.

All predicates are evaluated over all values in one query a mode.
"""

import json

import pytest
from pyspark.sql import SparkSession

from tests.spark.predicates.cases import SQL_NAMES, VALUES, Case, cases
from tidegate_protocol.scan.predicates import parse_predicate
from tidegate_protocol.schema.table_schema import StructType, parse_schema

Outcomes = dict[str | None, set[bool | None]]
CASES = cases()


@pytest.fixture(scope="module")
def ours() -> dict[Case, Outcomes]:
    return {case: outcomes(case) for case in CASES}


def outcomes(case: Case) -> Outcomes:
    """The outcomes that our judgement leaves open, by partition value."""
    schema = schema_of(case.type)
    questions = {
        outcome: parse_predicate(text, schema, ("x",))
        for outcome, text in (
            (True, case.text),
            (False, f"NOT ({case.text})"),
            (None, f"({case.text}) IS NULL"),
        )
    }
    return {
        value: {
            outcome
            for outcome, question in questions.items()
            if question.matches_partition({"x": value})
        }
        for value in VALUES[case.type]
    }


def schema_of(type_: str) -> StructType:
    field = {"name": "x", "type": type_, "nullable": True, "metadata": {}}
    return parse_schema(json.dumps({"type": "struct", "fields": [field]}))


def judged_by_spark(
    session: SparkSession, wanted: dict[Case, list[int]]
) -> dict[Case, dict[str | None, bool | None]]:
    """What Spark finds, in one query, for the values at the wanted places of their types' lists.

    Where nothing is wanted nothing is evaluated, so that no error ends the query.
    """
    by_type = {type_: [case for case in wanted if case.type == type_] for type_ in VALUES}
    query = " UNION ALL ".join(
        table_of_outcomes(type_, {case: wanted[case] for case in found})
        for type_, found in by_type.items()
        if found
    )
    rows = {(row.type, row.place): row.outcomes for row in session.sql(query).collect()}
    return {
        case: {VALUES[type_][place]: rows[type_, place][index] for place in wanted[case]}
        for type_, found in by_type.items()
        for index, case in enumerate(found)
    }


def table_of_outcomes(type_: str, wanted: dict[Case, list[int]]) -> str:
    name = SQL_NAMES.get(type_, type_)
    rows = [
        f"({place}, CAST({'NULL' if value is None else quoted(value)} AS {name}))"
        for place, value in enumerate(VALUES[type_])
    ]
    outcomes = [
        f"CASE WHEN place IN ({', '.join(map(str, places))}) THEN ({case.text}) END"
        for case, places in wanted.items()
    ]
    return (
        f"SELECT '{type_}' AS type, place, array({', '.join(outcomes)}) AS outcomes "
        f"FROM VALUES {', '.join(rows)} AS t(place, x)"
    )


def quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def decided(found: Outcomes, type_: str) -> list[int]:
    """The places of the values for which there is one outcome."""
    return [place for place, value in enumerate(VALUES[type_]) if len(found[value]) == 1]


def test_exact_predicates_are_decided(ours):
    undecided = [
        (case.type, case.text, value)
        for case, found in ours.items()
        if case.exact
        for value, possible in found.items()
        if len(possible) != 1
    ]
    assert not undecided


def test_what_is_decided_is_what_spark_finds(session, ours):
    session.conf.set("spark.sql.ansi.enabled", True)
    # In this mode a loose predicate may be an error before it is decided.
    wanted = {
        case: places
        for case, found in ours.items()
        if case.exact and (places := decided(found, case.type))
    }
    assert not wrong(judged_by_spark(session, wanted), ours)


def wrong(by_spark, ours):
    """Where there is one outcome for us, and Spark finds another."""
    return [
        (case.type, case.text, value, outcome, ours[case][value])
        for case, found in by_spark.items()
        for value, outcome in found.items()
        if len(ours[case][value]) == 1 and outcome not in ours[case][value]
    ]


def test_what_spark_finds_true_may_match(session, ours):
    """Without ANSI mode hardly anything is an error, so that everything can be asked."""
    session.conf.set("spark.sql.ansi.enabled", False)
    wanted = {case: list(range(len(VALUES[case.type]))) for case in ours}
    found = judged_by_spark(session, wanted)
    assert not wrong(found, ours)
    missed = [
        (case.type, case.text, value)
        for case, by_value in found.items()
        for value, outcome in by_value.items()
        if outcome is True and True not in ours[case][value]
    ]
    assert not missed
    assert (
        sum(outcome is True for by_value in found.values() for outcome in by_value.values()) > 1000
    )
