"""A service for each module: a table that other tests broke would end the vacuums of all others."""

from collections.abc import Iterator

import pytest

from tests.servers.server import serving
from tidegate_service.index.embedded.server import EmbeddedPostgres


@pytest.fixture(scope="module")
def shared_server(
    postgres_server: EmbeddedPostgres,
    migrated_template: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[str]:
    """The base URL of the service that the tests of a module share."""
    with serving(postgres_server, migrated_template, tmp_path_factory.mktemp("shared")) as url:
        yield url
