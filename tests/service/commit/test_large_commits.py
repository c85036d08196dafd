"""A commit of very many files: others go on beside it, it is a winner like any other, and its body
is neither parsed in their way nor kept whole."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from benchmarks.rig.processes import peak_rss_bytes
from tests.builders.flights import add, ndjson, table_body
from tests.service.api.http.connections.requests_by_hand import NDJSON_TYPE
from tests.service.api.http.connections.test_api_streams import adds
from tests.service.process.cli.command_line import serving, url_in
from tests.service.serving import DocumentedClient

MANY = 20_000
USUAL_S = 5.0
"""A small commit takes milliseconds. This is what a machine under load makes of them."""
FEW, WIDE = 5_000, 45_000
MOST_BYTES = 2_250
"""Of peak memory for each action that there is more. It is 1,200 to 1,500: the action, its
compressed bytes and a share in the blocks that go to Postgres. A line has 730, so a body that is
kept whole twice makes it 2,700 or more."""


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

    count = 0
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(land)
        while not landed.is_set():
            body = {"operation": "WRITE", "actions": [add(f"month=5/{count}")]}
            assert api.post(f"/tables/{small}/commits", json=body).status_code == 201
            health = str(api.base_url.copy_with(path="/healthz"))
            assert httpx.get(health, timeout=USUAL_S).status_code == 200
            count += 1
    assert answer.result().status_code == 201
    assert answer.result().json()["metrics"]["num_added_files"] == MANY
    assert count > 3, "the large commit was over before anything else could happen"

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


def wide(name: str, count: int) -> bytes:
    """A proposal of so many adds, each with statistics of several columns of its own."""
    low, high = ({f"column{n}": f"{edge}-@@@@@@" for n in range(9)} for edge in ("low", "high"))
    stats = json.dumps({"numRecords": 3, "minValues": low, "maxValues": high})
    envelope, line = ndjson(add(f"month=5/{name}-@@@@@@.parquet", stats=stats)).splitlines(True)
    return envelope + b"".join(line.replace(b"@@@@@@", b"%06d" % n) for n in range(count))


@pytest.mark.parametrize("catalog_managed", [False, True])
def test_its_body_is_not_kept_whole(database_url, tmp_path, catalog_managed):
    with (
        serving("--data-dir", tmp_path, TIDEGATE_DATABASE_URL=database_url) as (process, printed),
        DocumentedClient(base_url=f"{url_in(printed)}/api/v1", timeout=120.0) as api,
    ):
        table = new_table(api, "large", catalog_managed=catalog_managed)
        peaks = []
        for count in (FEW, WIDE):
            content = wide(f"of-{count}", count)
            answer = api.post(f"/tables/{table}/commits", content=content, headers=NDJSON_TYPE)
            assert answer.status_code == 201
            peaks.append(peak_rss_bytes(process.pid))
    # What the service takes whatever is sent, and to begin with, is in both.
    assert (peaks[1] - peaks[0]) / (WIDE - FEW) < MOST_BYTES
