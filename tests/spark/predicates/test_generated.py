"""Generated predicates over generated files, judged beside Spark: no row is passed over.

    make test-all ARGS="tests/spark/predicates/test_generated.py --predicates 100000"

Where Spark keeps a row of a file, the file may match, by its partition values and by its
statistics. Each predicate is asked in ANSI mode or without it, by turns, hundreds in one query.
"""

import itertools
import random
import re
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.spark.predicates.grammar import Grammar
from tests.spark.predicates.values import (
    DataFile,
    columns,
    data_file,
    quoted,
    schema_string,
    sql_type,
)
from tidegate_protocol.log.statistics import statistics_of
from tidegate_protocol.scan.predicates import InvalidPredicate, Predicate, parse_predicate
from tidegate_protocol.schema.table_schema import parse_schema

SCHEMA = parse_schema(schema_string())
PARTITIONED_BY = tuple(column.path for column in columns() if column.is_partition)
PARTS = 4
"""Of the predicates; each has files of its own."""
FILES = 30
BATCH = 100
REFUSED = 0.10
"""Of the predicates, at most so many that Spark does not take, or that are refused here."""
FAILURES = 0.25
"""Of a row's outcomes, at most so many that are errors."""

KEPT, DROPPED, FAILED = "T", "F", "!"
_LINE = re.compile(r"\bline (\d+)\b")


@dataclass(slots=True)
class Tally:
    """What became of the predicates, and of the questions: a predicate over a file, a row."""

    refused_by_spark: list[str] = field(default_factory=list)
    refused_here: list[str] = field(default_factory=list)
    rows: Counter[str] = field(default_factory=Counter)
    files: Counter[str] = field(default_factory=Counter)
    missed: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def asked(request: pytest.FixtureRequest) -> tuple[int, int]:
    """The number of predicates and the seed."""
    return request.config.getoption("--predicates"), request.config.getoption("--predicate-seed")


@pytest.fixture
def interpreted(session: SparkSession) -> SparkSession:
    """In ANSI mode. Code made for queries that run once takes far longer than the queries."""
    session.conf.set("spark.sql.ansi.enabled", True)
    session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    session.conf.set("spark.sql.codegen.wholeStage", False)
    # What is computed apart from the predicate that needs it fails for all of them.
    session.conf.set("spark.sql.subexpressionElimination.enabled", False)
    session.conf.set("spark.sql.alwaysInlineCommonExpr", True)
    return session


def without_ansi(session: SparkSession) -> SparkSession:
    """Another session with the same settings but for the mode."""
    other = session.newSession()
    for name, value in session.conf.getAll.items():
        if name.startswith("spark.sql.") and session.conf.isModifiable(name):
            other.conf.set(name, value)
    other.conf.set("spark.sql.ansi.enabled", False)
    return other


def frame(session: SparkSession, files: Sequence[DataFile]) -> DataFrame:
    """The rows of all files; `file` and `row` say where each belongs."""
    flat = [column for column in columns() if "." not in column.path]
    nested = [column for column in columns() if "." in column.path]
    lines = []
    for number, file in enumerate(files):
        for place, row in enumerate(file.rows):
            texts = ["NULL" if row[c.path] is None else quoted(row[c.path]) for c in columns()]
            lines.append(f"({number}, {place}, {', '.join(texts)})")
    names = [f"c{place}" for place in range(len(columns()))]
    casts = {
        column.path: f"CAST({name} AS {sql_type(column.type)})"
        for name, column in zip(names, columns(), strict=True)
    }
    struct = ", ".join(f"'{column.path[2:]}', {casts[column.path]}" for column in nested)
    made = session.sql(
        f"SELECT file, row, {', '.join(f'{casts[c.path]} AS {c.path}' for c in flat)}, "
        f"named_struct({struct}) AS n FROM VALUES {', '.join(lines)} AS "
        f"t(file, row, {', '.join(names)})"
    ).coalesce(1)
    # The casts are done once, not for each query.
    return made.localCheckpoint()


def outcomes(rows: DataFrame, predicates: Sequence[str]) -> dict[str, str]:
    """Of each predicate what Spark finds, a character for each row; it lacks those that Spark
    does not take."""
    try:
        found = rows.selectExpr(f"concat({','.join(map(outcome, predicates))})").collect()
    except PySparkException as error:
        if named := _LINE.search(str(error)):
            # Predicates stand on every second line.
            at = int(named[1]) // 2 - 1
            return outcomes(rows, [*predicates[:at], *predicates[at + 1 :]])
        half = len(predicates) // 2
        if not half:
            return {}
        return {**outcomes(rows, predicates[:half]), **outcomes(rows, predicates[half:])}
    return {text: "".join(row[0][at] for row in found) for at, text in enumerate(predicates)}


def outcome(predicate: str) -> str:
    """The predicate's outcome: `try_to_binary` lets no error out of what it is given."""
    found = f"try_to_binary(if(\n{predicate}\n, '{KEPT}', '{DROPPED}'), 'utf-8')"
    return f"coalesce(CAST({found} AS STRING), '{FAILED}')"


def judge(tally: Tally, files: Sequence[DataFile], parsed: Predicate, found: str) -> None:
    tally.rows.update(found)
    end = 0
    for file in files:
        start, end = end, end + len(file.rows)
        of_file = found[start:end]
        stats = statistics_of(file.stats)
        by_partition = parsed.matches_partition(file.partition)
        by_file = parsed.may_match(file.partition, stats)
        tally.files[f"partition {by_partition}"] += 1
        tally.files[f"file {by_file}"] += 1
        if KEPT in of_file and not (by_partition and by_file):
            row = file.rows[of_file.index(KEPT)]
            named = {name: text for name, text in row.items() if name in parsed.text}
            tally.missed.append(f"{parsed.text}\n  keeps {named} of {file.stats}")


@pytest.mark.parametrize("part", range(PARTS))
def test_what_spark_keeps_may_match(interpreted, asked, part):
    count, seed = asked[0] // PARTS, f"{asked[1]}-{part}"
    dice = random.Random(seed)
    grammar = Grammar(dice)
    files = [data_file(dice) for _ in range(FILES)]
    texts = [grammar.whole() for _ in range(count)]
    tally = Tally()
    # A mode is a setting of the session, and both sessions are busy at once.
    rows = [frame(interpreted, files), frame(without_ansi(interpreted), files)]
    with ThreadPoolExecutor(len(rows)) as pool:
        batches = [texts[start : start + BATCH] for start in range(0, count, BATCH)]
        answers = pool.map(outcomes, itertools.cycle(rows), batches)
        for batch, by_spark in zip(batches, answers, strict=True):
            tally.refused_by_spark += [text for text in batch if text not in by_spark]
            for text, found in by_spark.items():
                try:
                    parsed = parse_predicate(text, SCHEMA, PARTITIONED_BY)
                except InvalidPredicate as error:
                    tally.refused_here.append(f"{text}: {error}")
                    continue
                judge(tally, files, parsed, found)
    print(
        f"\n{count} predicates, seed {seed}: Spark refuses {len(tally.refused_by_spark)}, "
        f"refused here {len(tally.refused_here)}; rows {dict(tally.rows)}, "
        f"files {dict(tally.files)}"
    )
    assert not tally.missed, "\n".join(tally.missed[:20])
    assert len(tally.refused_by_spark) <= REFUSED * count, tally.refused_by_spark[:20]
    assert len(tally.refused_here) <= REFUSED * count, tally.refused_here[:20]
    assert tally.rows[FAILED] <= FAILURES * tally.rows.total()
    # The question was asked: Spark kept rows, and files were passed over.
    assert tally.rows[KEPT] > tally.rows.total() / 20
    assert tally.files["file False"] > tally.files["file True"] / 20
