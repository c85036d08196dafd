"""What the client sends of a predicate, judged beside Spark, which judges the predicate itself.

The session is far from UTC, and not in ANSI mode.
"""

import random

import pytest
from pyspark.errors import AnalysisException

from tests.spark.predicates import test_generated as generated
from tests.spark.predicates.cases import SQL_NAMES, Case
from tests.spark.predicates.grammar import Grammar
from tests.spark.predicates.test_against_spark import CASES, judged_by_spark, outcomes, wrong
from tests.spark.predicates.values import data_file
from tidegate.spark.expressions.canonical import exact, implied
from tidegate.spark.expressions.pruning import fixed_parts
from tidegate_protocol.log.statistics import statistics_of
from tidegate_protocol.scan.predicates import InvalidPredicate, parse_predicate

EVERY = 7
"""Of the cases, as many as this are passed over for one that is judged."""
ZONE = "spark.sql.session.timeZone"
SETTINGS = {
    ZONE: "America/New_York",
    "spark.sql.ansi.enabled": "false",
}


@pytest.fixture(scope="module")
def far(spark):
    session = spark.newSession()
    for name, value in SETTINGS.items():
        session.conf.set(name, value)
    return session


@pytest.fixture(scope="module")
def texts(far):
    """What is sent of each predicate that Spark resolves: all that follows, and all of it."""
    found = {}
    for case in CASES[::EVERY]:
        columns = far.createDataFrame([], f"x {SQL_NAMES.get(case.type, case.type)}")
        if condition := resolved(columns, case.text):
            sent = implied(far, condition, longest=4_000)
            found[case] = (" AND ".join(sent), exact(far, condition))
    return found


def resolved(df, text):
    """None for what is no condition to Spark."""
    try:
        return df.where(text)._jdf.queryExecution().analyzed().condition()
    except AnalysisException:
        return None


def test_what_is_sent_is_true_where_the_predicate_is(far, texts):
    ours = {
        case: outcomes(Case(case.type, sent, exact=False))
        for case, (sent, _) in texts.items()
        if sent
    }
    found = judged_by_spark(far, {case: list(range(len(ours[case]))) for case in ours})
    missed = [
        (case, value, texts[case][0])
        for case, by_value in found.items()
        for value, outcome in by_value.items()
        if outcome is True and True not in ours[case][value]
    ]
    assert not missed
    assert len(ours) > len(texts) / 3


def test_what_is_sent_as_exact_is_what_spark_finds(far, texts):
    ours = {
        case: outcomes(Case(case.type, sent, exact=True))
        for case, (_, sent) in texts.items()
        if sent and sent.upper() != "NULL"
    }
    found = judged_by_spark(far, {case: list(range(len(ours[case]))) for case in ours})
    assert not wrong(found, ours)
    assert len(ours) > len(texts) / 3


def test_generated_files_are_passed_over_and_taken_whole_where_spark_says_so(far):
    """With the values and statistics of files; what is proven of all rows of a file is, too."""
    dice = random.Random(20261129)
    grammar, files = Grammar(dice), [data_file(dice) for _ in range(generated.FILES)]
    far.conf.set(ZONE, "UTC")
    df = generated.frame(far, files)
    far.conf.set(ZONE, SETTINGS[ZONE])
    tally, whole = generated.Tally(), 0
    found = generated.outcomes(df, [grammar.whole() for _ in range(generated.BATCH * 2)])
    for text, by_row in found.items():
        condition = resolved(df, text)
        if condition is None or fixed_parts(far, condition) != [condition]:
            continue
        if sent := parsed(" AND ".join(implied(far, condition, longest=4_000))):
            generated.judge(tally, files, sent, by_row)
        of_all = exact(far, condition)
        counter = parsed(f"NOT ({of_all}) OR ({of_all}) IS NULL") if of_all else None
        end = 0
        for file in files if counter else ():
            start, end = end, end + len(file.rows)
            if not counter.may_match(file.partition, statistics_of(file.stats)):
                assert set(by_row[start:end]) == {generated.KEPT}, (text, of_all, file.stats)
                whole += 1
    assert not tally.missed
    assert whole > 500
    assert tally.files["file False"] > tally.files["file True"] / 4


def parsed(text):
    """None for what is no condition to the service, which the client leaves out."""
    try:
        return parse_predicate(text, generated.SCHEMA, generated.PARTITIONED_BY) if text else None
    except InvalidPredicate:
        return None
