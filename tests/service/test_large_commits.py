"""A commit of very many files: others go on beside it, and it is a winner like any other."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.service.requests_by_hand import NDJSON_TYPE, add, ndjson, table_body
from tests.service.serving import DocumentedClient
from tests.service.test_api_streams import adds

MANY = 120_000
USUAL_S = 5.0
"""A small commit takes milliseconds. This is what a machine under load makes of them."""


@pytest.fixture
def api(start_service):
    with DocumentedClient(base_url=f"{start_service().url}/api/v1", timeout=300.0) as client:
        yield client


def new_table(api: httpx.Client, name: str, *, catalog_managed: bool) -> str:
    body = table_body(f"main.air.{name}", catalog_managed=catalog_managed)
    assert api.post("/tables", json=body).status_code == 201
    return f"main.air.{name}"


@pytest.mark.parametrize("catalog_managed", [False, True])
def test_others_go_on_and_find_it_afterwards(api, catalog_managed):
    large = new_table(api, "large", catalog_managed=catalog_managed)
    small = new_table(api, "small", catalog_managed=catalog_managed)
    content = ndjson(*adds(MANY))
    landed = threading.Event()

    def land() -> httpx.Response:
        try:
            return api.post(f"/tables/{large}/commits", content=content, headers=NDJSON_TYPE)
        finally:
            landed.set()

    slowest, count = 0.0, 0
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(land)
        while not landed.is_set():
            began = time.perf_counter()
            body = {"operation": "WRITE", "actions": [add(f"month=5/{count}")]}
            assert api.post(f"/tables/{small}/commits", json=body).status_code == 201
            health = str(api.base_url.copy_with(path="/healthz"))
            assert httpx.get(health, timeout=USUAL_S).status_code == 200
            slowest, count = max(slowest, time.perf_counter() - began), count + 1
    assert answer.result().status_code == 201
    assert answer.result().json()["metrics"]["num_added_files"] == MANY
    assert count > 3, "the large commit was over before anything else could happen"
    assert slowest < USUAL_S

    # Of a transaction that read before it, it is a winner.
    body = {"operation": "WRITE", "read_version": 0, "actions": [add("month=6/new", "6")]}
    elsewhere = {**body, "reads": {"predicates": ["month = 6"]}}
    assert api.post(f"/tables/{large}/commits", json=elsewhere).json()["rebased_over"] == 1
    there = {**body, "reads": {"predicates": ["month = 5"]}}
    conflict = api.post(f"/tables/{large}/commits", json=there)
    assert (conflict.status_code, conflict.json()["code"]) == (409, "concurrent-append")
    assert conflict.json()["conflict"]["version"] == 1
    # It is in the log as it was sent, whoever wrote it there.
    found = api.get(f"/tables/{large}/commits/1").content
    assert found.partition(b"\n")[2] == content.partition(b"\n")[2]
    assert api.get(f"/tables/{large}/verify").json()["consistent"]
