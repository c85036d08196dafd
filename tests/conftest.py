"""Fixtures for every test. They live in modules by subject and are loaded from here."""

import pytest

pytest_plugins = ["tests.postgres", "tests.server"]


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Async tests (`@pytest.mark.anyio`) run on asyncio, like the service."""
    return "asyncio"
