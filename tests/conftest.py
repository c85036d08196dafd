"""Fixtures for every test. They live in modules by subject and are loaded from here."""

import functools
import gc
import os
import ssl

import pytest
from hypothesis import settings

from tests.memory import folder_of_tests

pytest_plugins = [
    "tests.hung",
    "tests.servers.postgres",
    "tests.servers.s3",
    "tests.scheduling",
    "tests.selection",
    "tests.servers.server",
]

# Of `tmp_path`: thousands of commits are synced there, each file and its folder.
os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(folder_of_tests()))


# What `make chaos` tries properties with whose examples are logs, files and servers.
settings.register_profile("long", max_examples=1_000)

# An HTTP client begins by reading the certificates of all authorities, which takes as long as ten
# requests. There are thousands of clients here: they share what the first has read.
ssl.create_default_context = functools.cache(ssl.create_default_context)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Async tests (`@pytest.mark.anyio`) run on asyncio, like the service."""
    return "asyncio"


def pytest_collection_finish() -> None:
    """The collector of garbage does not go through thousands of tests again and again."""
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--machine",
        default="6x50",
        metavar="RUNSxSTEPS",
        help="how much the state machine of tests/service/machine does",
    )
    parser.addoption(
        "--predicates",
        type=int,
        default=1_500,
        metavar="COUNT",
        help="how many predicates tests/spark/predicates/test_generated.py makes",
    )
    parser.addoption("--predicate-seed", type=int, default=20261122, help="and from which seed")
    parser.addoption(
        "--fuzzing-seconds",
        type=int,
        default=2,
        metavar="SECONDS",
        help="how long each of the three targets of tests/fuzzing is searched",
    )
    parser.addoption(
        "--worlds",
        type=int,
        default=1_000,
        help="how many worlds of tests/simulation there are",
    )
    parser.addoption(
        "--vectors",
        choices=("sixth", "all", "twice"),
        default="sixth",
        help="which vectors of tests/spark/dml run; twice: all, on both kinds of table",
    )
    parser.addoption(
        "--schedules",
        type=int,
        default=5,
        help="how many schedules tests/interop/test_conflict_checker.py puts to Delta Spark",
    )
    parser.addoption(
        "--http-vectors",
        choices=("third", "all"),
        default="third",
        help="which conflict vectors tests/service/api/routes/test_vectors_http.py runs",
    )
    parser.addoption(
        "--requests",
        type=int,
        default=2,
        help="how many requests of each mode tests/service/api/routes/test_schemathesis.py makes",
    )
