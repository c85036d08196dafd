"""Judging a file by a predicate takes time linear in the predicate, however it is nested."""

import operator

import pytest

from tests.protocol.judging import predicate, schema
from tidegate_protocol.scan.predicate.binding import bind
from tidegate_protocol.scan.predicate.evaluation.nodes import Row, Scalar, conjunction
from tidegate_protocol.scan.predicate.evaluation.values import Range, Value
from tidegate_protocol.scan.predicate.syntax.parsing import parse
from tidegate_protocol.schema.data_types import STRING

LEVELS = 8
TEXTS = ["1", "a", "2024-01-02", None, Range("0", "9", nullable=True)]


class Counted:
    """A predicate over the column `x`, of text; `bound` and `read` are how often the column was
    named to the binder, and read in a row."""

    def __init__(self, text: str) -> None:
        columns = schema({"x": "string"})
        self.bound = self.read = 0
        of_slot = operator.itemgetter(0)

        def run(row: Row) -> Value:
            self.read += 1
            return of_slot(row)

        def column(path: object) -> Scalar:
            self.bound += 1
            return Scalar(type=STRING, run=run, columns=frozenset({0}))

        tree = parse(text, is_column=lambda word: columns.field(word) is not None, pause=int)
        self._condition = conjunction(bind(tree, column, pause=int).conjuncts)

    def judge(self, value: Value) -> None:
        self._condition.run(Row([value]))
        self._condition.widened(Row([value]))


def nested(template: str) -> str:
    """The template in itself, so many times; `{0}` is a text."""
    text = "x"
    for _ in range(LEVELS):
        text = template.format(text)
    return text


TEMPLATES = [
    "string({0} = 1)",
    "string(1 <> {0})",
    "string({0} < 1.5)",
    "string({0} = DATE '2024-01-01')",
    "string({0} <=> 1)",
    "string({0} IS DISTINCT FROM 1)",
    "string({0} IN (1, 2))",
    "string({0} IN (1, '2', x))",
    "string({0} IN (x, x, x))",
    "string(1 IN ({0}, 2))",
    "string({0} BETWEEN 1 AND 3)",
    "string({0} BETWEEN x AND 'b')",
    "string(2 BETWEEN {0} AND 3)",
    "string(2 BETWEEN 1 AND {0})",
    "string({0} NOT BETWEEN 'a' AND 'b')",
    "string({0} IS NULL)",
    "string({0} = 'true' IS TRUE)",
    "string(boolean({0}) AND x = 1)",
    "string(boolean({0}) OR x = 1)",
    "string(NOT boolean({0}))",
    "string({0} LIKE '%a')",
    "string('a' LIKE {0})",
    "string(startswith({0}, x))",
    "CASE {0} WHEN 1 THEN 'a' WHEN 2 THEN 'b' WHEN 3 THEN 'c' END",
    "CASE {0} WHEN 'a' THEN x WHEN x THEN 'b' ELSE 'd' END",
    "CASE WHEN {0} = 1 THEN 'a' WHEN x = 'b' THEN x ELSE 'd' END",
    "CASE WHEN x = 1 THEN {0} ELSE x END",
    "CASE WHEN x = 1 THEN x ELSE {0} END",
    "if({0} = 1, x, 'a')",
    "coalesce({0}, x)",
    "coalesce(x, {0})",
    "nvl({0}, 'a')",
    "substring({0}, 1, 3)",
    "substring({0} FROM 2)",
    "string(int({0}) + int(x))",
    "string(-int({0}))",
    "string(int({0}) * 2 + 1)",
    "string(int({0}) / 2)",
    "string(CAST({0} AS decimal(10, 2)) * 2)",
    "string(TRY_CAST({0} AS date))",
    "string(date_add({0}, 1))",
    "string(date_trunc('day', {0}))",
    "string(year({0}))",
    "string(extract(month FROM {0}))",
    "my_udf({0}, x)",
    "string(my_udf({0}) = 1)",
    "string({0} IN (my_udf(x), 1))",
]


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_column_is_read_once_for_each_time_that_it_is_named(template):
    """Twice for each, since the judge asks two things of the predicate."""
    text = nested(template) + " = 'a'"
    named = text.count("x") - text.count("extract")
    counted = Counted(text)
    # What is not understood after all is looked through for the columns that it names.
    assert counted.bound <= (1 + LEVELS) * named
    for value in TEXTS:
        counted.read = 0
        counted.judge(value)
        assert counted.read <= 2 * named


def test_a_very_long_partition_value_may_match():
    """Each term may go through all of it."""
    judged = predicate("x = 'a'", "string")
    assert not judged.matches_partition({"x": "b" * 16 * 1024})
    assert judged.matches_partition({"x": "b" * (16 * 1024 + 1)})
    assert judged.may_match({"x": "b" * (16 * 1024 + 1)}, None)
    assert predicate("x IS NULL", "string").may_match({"x": "b" * (16 * 1024 + 1)}, None)
