"""Clients of the running service, which `tests.servers.server` starts."""

import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from tests.builders.flights import table_body
from tests.service.catalog_managed.restoring import Backups, backups
from tests.service.faults import FaultyStorage
from tests.service.serving import DocumentedClient
from tests.service.world import World, make_world
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.embedded.server import EmbeddedPostgres
from tidegate_service.storage import ObjectStorage


@pytest.fixture
def http(server: str) -> Iterator[httpx.Client]:
    """A client of it that holds every answer against the OpenAPI document."""
    with DocumentedClient(base_url=server, timeout=40.0) as client:
        yield client


@pytest.fixture
def api(server: str) -> Iterator[httpx.Client]:
    """The same, at `/api/v1`."""
    with DocumentedClient(base_url=f"{server}/api/v1", timeout=40.0) as client:
        yield client


@pytest.fixture
def shared_api(shared_server: str) -> Iterator[httpx.Client]:
    """A client of it, at `/api/v1`."""
    with DocumentedClient(base_url=f"{shared_server}/api/v1", timeout=40.0) as client:
        yield client


@pytest.fixture
def flights(shared_api: httpx.Client) -> str:
    """The name of a new plain table, partitioned by `month`, of the shared service."""
    name = f"main.air.{uuid.uuid4().hex}"
    assert shared_api.post("/tables", json=table_body(name)).status_code == 201
    return name


@pytest.fixture
def faults(tmp_path: Path) -> FaultyStorage:
    """The real storage with no faults scripted yet."""
    return FaultyStorage(ObjectStorage(warehouse=tmp_path.as_uri()))


@pytest.fixture
def world(index: PostgresIndex, faults: FaultyStorage, tmp_path: Path) -> World:
    """One instance's world over them, for tests of the use cases."""
    return make_world(index, faults, tmp_path.as_uri())


@pytest.fixture
async def made(
    postgres_server: EmbeddedPostgres, tmp_path: Path, anyio_backend: str
) -> AsyncIterator[Backups]:
    """A database and its backups, over one store."""
    async with backups(postgres_server.url, tmp_path) as made:
        yield made
