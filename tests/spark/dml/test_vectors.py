"""The command vectors, on plain and on catalog-managed tables in turns.

A sixth of each family runs; `--vectors all` runs every one, and `--vectors twice` each on
both kinds of table.
"""

from itertools import count, groupby
from operator import attrgetter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.dml.not_yet import EXPECTED_FAILURES
from tests.spark.dml.operations.registry import OPERATIONS
from tests.spark.dml.run import run
from tests.spark.dml.vectors import ABSENT, Vector, load
from tests.spark.dml.world import World
from tests.vectors import Kind
from tidegate import Lake

_VECTORS = load()
_numbers = count(1)
family_of = attrgetter("family")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "vector" in metafunc.fixturenames:
        metafunc.parametrize(("vector", "kind"), _cases(metafunc.config.getoption("--vectors")))


def _cases(which: str) -> list[object]:
    kinds = list(Kind)
    return [
        pytest.param(vector, kind, id=f"{vector.family}-{vector.name}-{kind}", marks=_marks(vector))
        for number, vector in enumerate(_sixth() if which == "sixth" else _VECTORS)
        for kind in (kinds if which == "twice" else [kinds[number % len(kinds)]])
    ]


def _sixth() -> list[Vector]:
    """Every sixth vector of each family, from its first one on."""
    families = groupby(sorted(_VECTORS, key=family_of), key=family_of)
    return [vector for _, family in families for vector in list(family)[::6]]


def _marks(vector: Vector) -> list[pytest.MarkDecorator]:
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
def test_every_operation_is_run_and_what_fails_is_listed() -> None:
    assert {op["op"] for vector in _VECTORS for op in vector.ops} <= OPERATIONS.keys()
    names = {vector.name for vector in _VECTORS}
    assert EXPECTED_FAILURES.keys() <= names
    assert len(names) == len(_VECTORS)
