"""Large NDJSON bodies: bounded, read as they come, and the same to the log as small ones."""

import gzip
import json
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.builders.flights import TABLE, add, ndjson, table_body
from tests.service.api.http.connections.requests_by_hand import NDJSON_TYPE
from tests.service.serving import DocumentedClient

GZIP = {"Content-Encoding": "gzip"}
MANY = 6_000
"""So many that they are written in bulk."""


def adds(count: int, month: int = 5) -> list[dict[str, object]]:
    return [add(f"month={month}/part-{n:05}.parquet", str(month), size=n + 1) for n in range(count)]


def commit(api: httpx.Client, table: str, content: bytes | Iterator[bytes], **headers: str):
    return api.post(f"/tables/{table}/commits", content=content, headers={**NDJSON_TYPE, **headers})


def log_of(api: httpx.Client, table: str, version: int) -> list[bytes]:
    return api.get(f"/tables/{table}/commits/{version}").content.splitlines()


class TestTaken:
    def test_the_bytes_that_come_are_the_bytes_that_land(self, shared_api, flights):
        content = ndjson(*adds(MANY))
        answer = commit(shared_api, flights, content)
        assert (answer.status_code, answer.json()["version"]) == (201, 1)
        assert answer.json()["metrics"]["num_added_files"] == MANY
        assert log_of(shared_api, flights, 1)[1:] == content.splitlines()[1:]

    def test_whatever_their_form(self, shared_api, flights):
        spaced = [json.dumps(action) for action in adds(MANY)]
        spaced[7] = spaced[7].replace('"size"', '"of nobody": [1, {"x": null}], "size"')
        spaced[8] = spaced[8].replace("part-", "p%20t-").replace("month", "m\\u006fnth")
        spaced[9] = json.dumps({"txn": {"appId": "a", "version": 1}})
        content = "\n".join(['{"operation":"WRITE"}', *spaced]).encode()
        assert commit(shared_api, flights, content).status_code == 201
        assert log_of(shared_api, flights, 1)[1:] == [line.encode() for line in spaced]

    def test_scans_know_their_statistics(self, shared_api, flights):
        actions = adds(MANY)
        for n, action in enumerate(actions):
            carrier = f'{{"carrier":"c{n:05}"}}'
            stats = f'{{"numRecords":3,"minValues":{carrier},"maxValues":{carrier}}}'
            action["add"]["stats"] = None if n == 8 else stats
        assert commit(shared_api, flights, ndjson(*actions)).status_code == 201
        asked = {"predicates": ["carrier = 'c00007'"]}
        found = shared_api.post(f"/tables/{flights}/scan", json=asked).json()["files"]
        # The second one has none, and may hold anything.
        assert found == actions[7:9]
        assert shared_api.get(f"/tables/{flights}/verify").json()["consistent"]

    def test_in_pieces_that_end_anywhere(self, shared_api, flights):
        content = ndjson(*adds(MANY))
        pieces = (content[at : at + 7_001] for at in range(0, len(content), 7_001))
        assert commit(shared_api, flights, pieces).status_code == 201
        assert log_of(shared_api, flights, 1)[1:] == content.splitlines()[1:]

    def test_compressed(self, shared_api, flights):
        content = ndjson(*adds(MANY), transaction_id="t-1")
        assert commit(shared_api, flights, gzip.compress(content), **GZIP).status_code == 201
        assert log_of(shared_api, flights, 1)[1:] == content.splitlines()[1:]
        again = commit(shared_api, flights, content)
        assert (again.status_code, again.json()["replayed"]) == (200, True)

    def test_files_that_are_live_are_replaced(self, shared_api, flights):
        sent = adds(MANY)
        assert commit(shared_api, flights, ndjson(*sent[2_000:2_010])).status_code == 201
        again = [add(a["add"]["path"], size=77) for a in sent]
        assert commit(shared_api, flights, ndjson(*again)).json()["version"] == 2
        head = shared_api.get(f"/tables/{flights}").json()
        assert (head["num_files"], head["size_bytes"]) == (MANY, 77 * MANY)

    def test_files_that_are_removed_are_gone(self, shared_api, flights):
        sent = adds(MANY)
        assert commit(shared_api, flights, ndjson(*sent)).status_code == 201
        removes = [
            {"remove": {"path": a["add"]["path"], "dataChange": True, "deletionTimestamp": 2}}
            for a in sent[10:]
        ]
        content = ndjson(*removes, read_version=1, operation="DELETE")
        assert (
            commit(shared_api, flights, content).json()["metrics"]["num_removed_files"] == MANY - 10
        )
        head = shared_api.get(f"/tables/{flights}").json()
        assert (head["num_files"], head["size_bytes"]) == (10, 55)

    def test_a_table_with_row_tracking_gives_them_ids(self, shared_api):
        name = f"main.air.{uuid.uuid4().hex}"
        body = table_body(name, properties={"delta.enableRowTracking": "true"})
        assert shared_api.post("/tables", json=body).status_code == 201
        assert commit(shared_api, name, ndjson(*adds(MANY))).status_code == 201
        files = shared_api.post(f"/tables/{name}/scan", json={}).json()["files"]
        assert sorted(f["add"]["baseRowId"] for f in files) == [3 * n for n in range(MANY)]

    def test_a_table_may_be_created_with_them(self, shared_api):
        name = f"main.air.{uuid.uuid4().hex}"
        sent = adds(MANY)
        assert shared_api.post("/tables", json=table_body(name, actions=sent)).status_code == 201
        assert shared_api.get(f"/tables/{name}").json()["num_files"] == MANY
        assert (
            log_of(shared_api, name, 0)[-1] == json.dumps(sent[-1], separators=(",", ":")).encode()
        )


class TestRefused:
    @pytest.mark.parametrize(
        ("bad", "where"),
        [
            (b'{"add":', ""),
            (b'{"add":{}} {"add":{}}', ""),
            (b'{"add":{"path":3}}', "/add/path"),
            (b'{"txn":{"appId":"a","appId":"b","version":1}}', ""),
            (b'{"add":{"path":"a\\u0000","partitionValues":{},"size":1}}', ""),
            (b"[]", ""),
            (b"\xff", ""),
        ],
    )
    def test_the_line_that_is_no_action_is_named(self, shared_api, flights, bad, where):
        lines = ndjson(*adds(MANY)).splitlines()
        lines.insert(2_001, bad)
        answer = commit(shared_api, flights, b"\n".join(lines))
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid-action")
        assert answer.json()["errors"][0]["where"] == f"/actions/2000{where}"

    @pytest.mark.parametrize(
        ("fields", "code"),
        [
            ({"path": "month=5/../x"}, "invalid-path"),
            ({"path": "/x"}, "invalid-path"),
            ({"size": 0}, "invalid-action"),
            ({"modificationTime": -1}, "invalid-action"),
            ({"stats": "{"}, "invalid-action"),
            ({"stats": '{"numRecords":-1}'}, "invalid-action"),
            ({"stats": '{"minValues":3}'}, "invalid-action"),
            ({"partitionValues": {}}, "partition-mismatch"),
            ({"path": "month=5/part-00001.parquet"}, "duplicate-action"),
        ],
    )
    def test_the_action_that_cannot_be_committed_is_named(self, shared_api, flights, fields, code):
        actions = adds(MANY)
        actions[2_000]["add"].update(fields)
        if code != "duplicate-action":
            actions[2_500]["add"]["size"] = 0
        answer = commit(shared_api, flights, ndjson(*actions))
        assert (answer.status_code, answer.json()["code"]) == (422, code)
        if code != "duplicate-action":
            assert answer.json()["errors"][0]["where"] == "/actions/2000"

    def test_a_line_that_does_not_end(self, shared_api, flights):
        content = b'{"operation":"WRITE"}\n' + b'{"add":{"path":"' + b"a" * (5 * 1024 * 1024)
        answer = commit(shared_api, flights, content)
        assert (answer.status_code, answer.json()["code"]) == (413, "too-large")


@pytest.fixture
def bounded(start_service) -> Iterator[httpx.Client]:
    """A service of its own with a table, which takes a thousand lines and three million bytes."""
    service = start_service(max_stream_actions=1_000, max_stream_bytes=3_000_000)
    with DocumentedClient(base_url=f"{service.url}/api/v1", timeout=40.0) as client:
        assert client.post("/tables", json=table_body()).status_code == 201
        yield client


class TestBounds:
    @pytest.mark.parametrize(
        "lines",
        [b"\n" * 1_001, b'{"txn":{"appId":"a","version":1}}\n' * 1_001],
        ids=["empty", "actions"],
    )
    def test_too_many(self, bounded, lines):
        answer = commit(bounded, TABLE, b'{"operation":"WRITE"}\n' + lines)
        assert (answer.status_code, answer.json()["code"]) == (413, "too-large")
        assert "1000 actions" in answer.json()["detail"]

    def test_as_many_as_are_taken(self, bounded):
        assert commit(bounded, TABLE, ndjson(*adds(1_000))).status_code == 201

    @pytest.mark.parametrize("announced", [True, False])
    def test_too_long(self, bounded, announced):
        content = ndjson(*(add(f"month=5/{n}", tags={"x": "y" * 4_000}) for n in range(900)))
        answer = commit(bounded, TABLE, content if announced else iter([content]))
        assert (answer.status_code, answer.json()["code"]) == (413, "too-large")

    def test_together_they_have_no_more(self, bounded):
        path = f"/tables/{TABLE}/conflict-check"
        lines = [add(f"month=5/{n}", tags={"x": "y" * 4_000}) for n in range(450)]
        content = ndjson(*lines)
        sent, released = threading.Event(), threading.Event()

        def held() -> Iterator[bytes]:
            yield content[:-1]
            sent.set()
            # One that is refused hears of it when it sends more.
            while not released.wait(0.1):
                yield b" "
            yield b"\n"

        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(bounded.post, path, content=held(), headers=NDJSON_TYPE)
            try:
                sent.wait(30)
                while True:
                    answer = bounded.post(path, content=content, headers=NDJSON_TYPE)
                    if answer.status_code != 200 or first.done():
                        break
            finally:
                released.set()
            # Whoever comes second is told to come back, and the other is none the worse.
            refused, taken = sorted((answer, first.result()), key=lambda a: -a.status_code)
        assert (refused.status_code, refused.json()["code"]) == (429, "backpressure")
        assert int(refused.headers["retry-after"]) > 0
        assert taken.status_code == 200
        again = bounded.post(path, content=content, headers=NDJSON_TYPE)
        assert again.status_code == 200
