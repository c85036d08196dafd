"""The running service and clients for it. Each test has a database and a warehouse of its own."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from tidegate_service.settings import Settings

from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from tests.service.serving import DocumentedClient, Running, running

StartService = Callable[..., "Running"]


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    """Settings of a service on a migrated database of this test's own."""
    return Settings(
        database_url=database_url, data_dir=tmp_path, port=0, publish_interval_seconds=0.2
    )


@pytest.fixture
def start_service(settings: Settings) -> Iterator[StartService]:
    """Start a service with some settings changed; it is stopped after the test."""
    from tests.service.serving import running
    with ExitStack() as stack:

        def start(**changes: object) -> "Running":
            changed = Settings(**{**dict(settings), **changes})
            return stack.enter_context(running(changed))

        yield start


@pytest.fixture
def service(start_service: StartService) -> "Running":
    """A service with the usual settings."""
    return start_service()


@pytest.fixture
def server(service: "Running") -> str:
    """The base URL of a running service."""
    return service.url


@pytest.fixture
def http(server: str) -> Iterator[httpx.Client]:
    """A client of it that holds every answer against the OpenAPI document."""
    from tests.service.serving import DocumentedClient
    with DocumentedClient(base_url=server, timeout=40.0) as client:
        yield client


@pytest.fixture
def api(server: str) -> Iterator[httpx.Client]:
    """The same, at `/api/v1`."""
    from tests.service.serving import DocumentedClient
    with DocumentedClient(base_url=f"{server}/api/v1", timeout=40.0) as client:
        yield client
