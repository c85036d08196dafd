"""One service for all attacks of a file: each has to leave it as it was."""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest

from tests.servers.postgres import cloned
from tests.service.tenants.rig import Service, tenants
from tidegate_service.index.embedded.server import EmbeddedPostgres
from tidegate_service.settings import Settings


@pytest.fixture(scope="module")
def deadline_s() -> float:
    """Of the service; a file of attacks that last may have a shorter one."""
    return 30.0


@pytest.fixture(scope="module")
def limits() -> dict[str, Any]:
    """Further settings of the service; a file of floods may have lower bounds, and tokens."""
    return {}


@pytest.fixture(scope="module")
def service(
    deadline_s: float,
    limits: dict[str, Any],
    postgres_server: EmbeddedPostgres,
    migrated_template: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Service]:
    with cloned(postgres_server.url, migrated_template) as url:
        settings = Settings(
            database_url=url,
            data_dir=tmp_path_factory.mktemp("tenants"),
            port=0,
            deadline_seconds=deadline_s,
            **limits,
        )
        with tenants(settings) as service:
            yield service


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[ProcessPoolExecutor]:
    """Another process: a flood takes no interpreter from the tests."""
    with ProcessPoolExecutor(1, mp_context=get_context("forkserver")) as pool:
        yield pool
