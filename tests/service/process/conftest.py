"""Two instances over one database, for the tests of a file."""

from collections.abc import Iterator

import pytest

from tests.servers.postgres import cloned
from tests.service.process.killed.crashing import Pair, pair
from tidegate_service.index.embedded.server import EmbeddedPostgres


@pytest.fixture(scope="module")
def two(
    postgres_server: EmbeddedPostgres,
    migrated_template: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Pair]:
    with (
        cloned(postgres_server.url, migrated_template) as url,
        pair(url, tmp_path_factory.mktemp("two")) as made,
    ):
        yield made
