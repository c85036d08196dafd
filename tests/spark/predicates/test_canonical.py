"""What the client sends of a predicate, judged beside Spark, which judges the predicate itself.

The session is far from UTC, and not in ANSI mode.
"""

import pytest
from pyspark.errors import AnalysisException

from tests.spark.predicates.cases import SQL_NAMES, Case
from tests.spark.predicates.test_against_spark import CASES, judged_by_spark, outcomes, wrong
from tidegate.spark.expressions.canonical import exact, implied

EVERY = 7
"""Of the cases, as many as this are passed over for one that is judged."""
SETTINGS = {
    "spark.sql.session.timeZone": "America/New_York",
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
        try:
            plan = columns.where(case.text)._jdf.queryExecution().analyzed()
        except AnalysisException:
            continue
        condition = plan.condition()
        found[case] = (" AND ".join(implied(far, condition, longest=4_000)), exact(far, condition))
    return found


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
