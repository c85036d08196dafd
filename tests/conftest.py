"""Fixtures for every test. They live in modules by subject and are loaded from here."""

import pytest

pytest_plugins = ["tests.postgres", "tests.s3", "tests.server"]


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Async tests (`@pytest.mark.anyio`) run on asyncio, like the service."""
    return "asyncio"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--machine",
        default="30x50",
        metavar="RUNSxSTEPS",
        help="how much the state machine of tests/service/machine does",
    )
