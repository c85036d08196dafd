"""Predicates against an evaluator of single rows that is as plain as can be."""

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.protocol.judging import predicate, statistics

Row = dict[str, object]
Outcome = bool | None


@dataclass(frozen=True)
class Sample:
    """A predicate's text and what it is for a row."""

    text: str
    of: Callable[[Row], Outcome]


@dataclass(frozen=True)
class Operand:
    text: str
    of: Callable[[Row], object]


COLUMNS = {"i": "long", "j": "integer", "s": "string", "d": "double", "b": "boolean"}
NUMBERS = st.integers(-3, 3)
TEXTS = st.text("ab", min_size=1, max_size=3)
DOUBLES = st.sampled_from([-1.5, -0.0, 0.5, 2.0, math.inf, math.nan])
VALUES = {"i": NUMBERS, "j": NUMBERS, "s": TEXTS, "d": DOUBLES, "b": st.booleans()}
ROWS = st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()})


def column(name: str) -> Operand:
    return Operand(name, lambda row: row[name])


def number(value: int) -> Operand:
    return Operand(str(value), lambda _: value)


def text(value: str) -> Operand:
    return Operand(f"'{value}'", lambda _: value)


NULL = Operand("NULL", lambda _: None)


def applied(template: str, compute: Callable[..., object], *operands: Operand) -> Operand:
    def of(row: Row) -> object:
        values = [operand.of(row) for operand in operands]
        return None if None in values else compute(*values)

    return Operand(template.format(*(operand.text for operand in operands)), of)


def rank(value: object) -> object:
    """Spark's order of numbers: NaN is the largest and equal to itself; there is one zero."""
    if not isinstance(value, float):
        return value
    return (True, 0.0) if math.isnan(value) else (False, value)


def ranked(compare: Callable[[object, object], bool]) -> Callable[[object, object], bool]:
    def ranked_compare(left: object, right: object) -> bool:
        if isinstance(left, float) != isinstance(right, float) and not isinstance(left, str):
            left, right = float(left), float(right)
        return compare(rank(left), rank(right))

    return ranked_compare


COMPARISONS = {
    "=": ranked(operator.eq),
    "<>": ranked(operator.ne),
    "<": ranked(operator.lt),
    "<=": ranked(operator.le),
    ">": ranked(operator.gt),
    ">=": ranked(operator.ge),
}


def compared(left: Operand, symbol: str, right: Operand) -> Sample:
    found = applied(f"{{}} {symbol} {{}}", COMPARISONS[symbol], left, right)
    return Sample(found.text, found.of)


def distinct(left: Operand, right: Operand) -> Sample:
    def of(row: Row) -> bool:
        a, b = left.of(row), right.of(row)
        return (a is None) is not (b is None) or (a is not None and not COMPARISONS["="](a, b))

    return Sample(f"{left.text} IS DISTINCT FROM {right.text}", of)


def is_null(operand: Operand) -> Sample:
    return Sample(f"{operand.text} IS NULL", lambda row: operand.of(row) is None)


def one_of(value: Operand, choices: list[Operand]) -> Sample:
    def of(row: Row) -> Outcome:
        return any_of([compared(value, "=", choice).of(row) for choice in choices])

    return Sample(f"{value.text} IN ({', '.join(choice.text for choice in choices)})", of)


def between(value: Operand, low: Operand, high: Operand) -> Sample:
    def of(row: Row) -> Outcome:
        return all_of([compared(value, ">=", low).of(row), compared(value, "<=", high).of(row)])

    return Sample(f"{value.text} BETWEEN {low.text} AND {high.text}", of)


def begins(value: Operand, prefix: str) -> Sample:
    found = applied(f"{{}} LIKE '{prefix}%'", lambda found: found.startswith(prefix), value)
    return Sample(found.text, found.of)


def contains(value: Operand, part: str) -> Sample:
    found = applied(f"{{}} LIKE '%{part}%'", lambda found: part in found, value)
    return Sample(found.text, found.of)


def all_of(outcomes: list[Outcome]) -> Outcome:
    return False if False in outcomes else None if None in outcomes else True


def any_of(outcomes: list[Outcome]) -> Outcome:
    return True if True in outcomes else None if None in outcomes else False


def inverse(sample: Sample) -> Sample:
    def of(row: Row) -> Outcome:
        outcome = sample.of(row)
        return None if outcome is None else not outcome

    return Sample(f"NOT ({sample.text})", of)


def chained(word: str, samples: list[Sample]) -> Sample:
    fold = all_of if word == "AND" else any_of
    return Sample(
        f" {word} ".join(f"({sample.text})" for sample in samples),
        lambda row: fold([sample.of(row) for sample in samples]),
    )


def judged(sample: Sample, word: str, wanted: Outcome) -> Sample:
    return Sample(f"({sample.text}) IS {word}", lambda row: sample.of(row) is wanted)


def chosen(condition: Sample, then: Operand, otherwise: Operand) -> Operand:
    return Operand(
        f"CASE WHEN {condition.text} THEN {then.text} ELSE {otherwise.text} END",
        lambda row: then.of(row) if condition.of(row) is True else otherwise.of(row),
    )


def replaced(value: Operand, default: Operand) -> Operand:
    def of(row: Row) -> object:
        found = value.of(row)
        return default.of(row) if found is None else found

    return Operand(f"coalesce({value.text}, {default.text})", of)


SYMBOLS = st.sampled_from(sorted(COMPARISONS))
INTEGERS = st.sampled_from(["i", "j"]).map(column)
CONSTANTS = NUMBERS.map(number)
SUMS = st.builds(lambda a, b: applied("({} + {})", lambda x, y: x + y, a, b), INTEGERS, CONSTANTS)
DEFAULTS = st.builds(replaced, INTEGERS, CONSTANTS)
WHOLE = INTEGERS | CONSTANTS | SUMS | DEFAULTS | st.just(NULL)
WORDS = st.just(column("s")) | TEXTS.map(text)
LEAVES = st.one_of(
    st.builds(compared, WHOLE, SYMBOLS, WHOLE),
    st.builds(compared, WORDS, SYMBOLS, WORDS),
    st.builds(compared, st.just(column("d")), SYMBOLS, INTEGERS | CONSTANTS),
    st.builds(distinct, WHOLE, WHOLE),
    st.builds(distinct, WORDS, WORDS | st.just(NULL)),
    st.builds(one_of, WHOLE, st.lists(CONSTANTS | st.just(NULL), min_size=1, max_size=3)),
    st.builds(one_of, WHOLE, st.lists(WHOLE, min_size=1, max_size=3)),
    st.builds(one_of, WORDS, st.lists(WORDS, min_size=1, max_size=3)),
    st.builds(between, WHOLE, WHOLE, WHOLE),
    st.builds(between, WORDS, WORDS, WORDS),
    st.builds(is_null, WHOLE | WORDS | st.just(column("d"))),
    st.builds(begins, WORDS, TEXTS),
    st.builds(contains, WORDS, TEXTS),
    st.just(Sample("b", lambda row: row["b"])),
)


WORDS_OF_IS: list[tuple[str, Outcome]] = [("TRUE", True), ("FALSE", False), ("UNKNOWN", None)]


@st.composite
def samples(draw: st.DrawFn, depth: int = 3) -> Sample:
    """A predicate of up to so many levels of connectives."""
    kind = draw(st.integers(0, 5)) if depth else 0
    inner = samples(depth - 1)
    match kind:
        case 1:
            return inverse(draw(inner))
        case 2 | 3:
            word = draw(st.sampled_from(["AND", "OR"]))
            return chained(word, draw(st.lists(inner, min_size=2, max_size=3)))
        case 4:
            return judged(draw(inner), *draw(st.sampled_from(WORDS_OF_IS)))
        case 5:
            value = chosen(draw(inner), draw(WHOLE), number(0))
            return compared(value, draw(SYMBOLS), draw(CONSTANTS))
        case _:
            return draw(LEAVES)


SAMPLES = samples()


def written(value: object) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return {"inf": "Infinity", "nan": "NaN"}.get(str(value), str(value))
    return None if value is None else str(value)


@settings(max_examples=2 * settings.default.max_examples)
@given(SAMPLES, ROWS)
def test_a_partition_matches_exactly_where_its_row_does(sample, row):
    parsed = predicate(sample.text, COLUMNS, list(COLUMNS))
    values = {name: written(value) for name, value in row.items()}
    assert parsed.matches_partition(values) is (sample.of(row) is True)
    assert parsed.may_match(values, None) is (sample.of(row) is True)


KNOWN = st.fixed_dictionaries(
    {part: st.sets(st.sampled_from("ijsdb")) for part in ("low", "high", "nulls")}
)


@settings(max_examples=4 * settings.default.max_examples)
@given(SAMPLES, st.lists(ROWS, min_size=1, max_size=4), KNOWN, NUMBERS.map(abs))
def test_a_file_that_holds_a_matching_row_may_match(sample, rows, known, slack):
    bounds: dict[str, dict[str, object]] = {"low": {}, "high": {}, "nulls": {}}
    for name in COLUMNS:
        values = [row[name] for row in rows if row[name] is not None]
        # Writers leave NaN out; one cannot write an infinity as a JSON number.
        finite = [v for v in values if not isinstance(v, float) or math.isfinite(v)]
        infinite = [v for v in values if v in (math.inf, -math.inf)]
        if finite and not infinite:
            widened = slack if name in "ij" else 0
            bounds["low"][name] = min(finite) - widened if widened else min(finite)
            bounds["high"][name] = max(finite) + widened if widened else max(finite)
        bounds["nulls"][name] = len(rows) - len(values)
    kept = {
        part: {name: value for name, value in columns.items() if name in known[part]}
        for part, columns in bounds.items()
    }
    stats = statistics(**kept, records=len(rows))
    parsed = predicate(sample.text, COLUMNS, [])
    if any(sample.of(row) is True for row in rows):
        assert parsed.may_match({}, stats)
        assert parsed.matches_partition({})


@given(SAMPLES, ROWS)
def test_the_rules_of_three_valued_logic_hold(sample, row):
    values = {name: written(value) for name, value in row.items()}

    def outcome(text: str) -> bool:
        return predicate(text, COLUMNS, list(COLUMNS)).matches_partition(values)

    text = sample.text
    assert outcome(f"NOT NOT ({text})") is outcome(text)
    assert outcome(f"({text}) OR NOT ({text})") is (sample.of(row) is not None)
    assert not outcome(f"({text}) AND NOT ({text})")
    assert outcome(f"NOT (({text}) AND b)") is outcome(f"NOT ({text}) OR NOT b")
    assert outcome(f"NOT (({text}) OR b)") is outcome(f"NOT ({text}) AND NOT b")
