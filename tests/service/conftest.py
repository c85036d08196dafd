"""Clients of the running service, which `tests.server` starts."""

import uuid
from collections.abc import Iterator

import httpx
import pytest

from tests.service.requests_by_hand import table_body
from tests.service.serving import DocumentedClient


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
