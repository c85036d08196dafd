"""The running service for tests: one of a test's own, or one that all tests share."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.servers.postgres import cloned
from tidegate_service.api.http.request.limits import USUAL, ServerLimits
from tidegate_service.index.embedded.server import EmbeddedPostgres
from tidegate_service.settings import Settings

# Loaded with every test, so what needs the whole service is imported by the tests that start it.
if TYPE_CHECKING:
    from tests.service.serving import Running

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

        def start(limits: ServerLimits = USUAL, **changes: object) -> "Running":
            changed = Settings(**{**dict(settings), **changes})
            return stack.enter_context(running(changed, limits))

        yield start


@pytest.fixture
def service(start_service: StartService) -> "Running":
    """A service with the usual settings."""
    return start_service()


@pytest.fixture
def server(service: "Running") -> str:
    """The base URL of a running service."""
    return service.url


def shared(
    postgres_server: EmbeddedPostgres,
    migrated_template: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[str]:
    """The base URL of one service for all tests that name their own tables and break nothing."""
    from tests.service.serving import running

    with cloned(postgres_server.url, migrated_template) as url:
        settings = Settings(database_url=url, data_dir=tmp_path_factory.mktemp("shared"), port=0)
        with running(settings) as service:
            yield service.url


shared_server = pytest.fixture(scope="session")(shared)
