"""Every command vector, on a plain or on a catalog-managed table, in turns.

`--both-kinds` runs each on both: the rules are the same, and a vector takes a second or more.
"""

from itertools import count
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.dml.not_yet import EXPECTED_FAILURES, MISSING_OPERATIONS
from tests.spark.dml.registry import OPERATIONS
from tests.spark.dml.run import run
from tests.spark.dml.vectors import ABSENT, Vector, load
from tests.spark.dml.world import World
from tests.vectors import Kind
from tidegate import Lake

_VECTORS = load()
_numbers = count(1)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "vector" in metafunc.fixturenames:
        both = metafunc.config.getoption("--both-kinds")
        metafunc.parametrize(("vector", "kind"), _cases(both=both))


def _cases(*, both: bool) -> list[object]:
    kinds = list(Kind)
    return [
        pytest.param(vector, kind, id=f"{vector.family}-{vector.name}-{kind}", marks=_marks(vector))
        for number, vector in enumerate(_VECTORS)
        for kind in (kinds if both else [kinds[number % len(kinds)]])
    ]


def _marks(vector: Vector) -> list[pytest.MarkDecorator]:
    missing = {op["op"] for op in vector.ops} & MISSING_OPERATIONS.keys()
    if missing:
        kind = min(missing)
        return [pytest.mark.skip(reason=f"{kind}: {MISSING_OPERATIONS[kind]}")]
    if (reason := EXPECTED_FAILURES.get(vector.name)) is not None:
        return [pytest.mark.xfail(strict=True, reason=reason)]
    return []


@pytest.mark.skipif(not _VECTORS, reason=ABSENT)
def test_a_vector(
    session: SparkSession, lake: Lake, tmp_path: Path, vector: Vector, kind: Kind
) -> None:
    for name, value in vector.conf.items():
        session.conf.set(name, value)
    run(
        World(
            spark=session,
            lake=lake,
            vector=vector,
            name=f"main.dml.t{next(_numbers)}",
            catalog_managed=kind is Kind.CATALOG_MANAGED,
            folder=tmp_path,
        )
    )


@pytest.mark.skipif(not _VECTORS, reason=ABSENT)
def test_what_is_missing_is_listed_and_nothing_else() -> None:
    kinds = {op["op"] for vector in _VECTORS for op in vector.ops}
    assert not MISSING_OPERATIONS.keys() & OPERATIONS.keys()
    assert kinds <= MISSING_OPERATIONS.keys() | OPERATIONS.keys()
    names = {vector.name for vector in _VECTORS}
    assert EXPECTED_FAILURES.keys() <= names
    assert len(names) == len(_VECTORS)
