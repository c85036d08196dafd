"""When the index or the store is away: 503, nothing false said, and recovery by itself."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest

from tests.builders.flights import TABLE, add, proposal, remove, table_body
from tests.service.api.http.connections.requests_by_hand import exchange
from tests.service.serving import DocumentedClient
from tidegate_service.api.http.request.limits import ServerLimits

CALLS = [
    ("GET", "/tables", None, 200),
    ("GET", f"/tables/{TABLE}", None, 200),
    ("POST", "/tables", table_body("main.air.another"), 201),
    ("POST", f"/tables/{TABLE}/commits", proposal(add(), transaction_id="t-1"), 201),
    ("POST", f"/tables/{TABLE}/conflict-check", proposal(add(), transaction_id="t-2"), 200),
    ("GET", f"/tables/{TABLE}/commits", None, 200),
    ("GET", f"/tables/{TABLE}/commits/0", None, 200),
    ("GET", f"/tables/{TABLE}/transactions/t-1", None, 200),
    ("POST", f"/tables/{TABLE}/transactions/t-3/abort", None, 200),
    ("POST", f"/tables/{TABLE}/scan", {}, 200),
    ("GET", f"/tables/{TABLE}/app-transactions/x", None, 200),
    ("DELETE", f"/tables/{TABLE}", None, 204),
]


@contextmanager
def closed(server_url: str, database: str) -> Iterator[None]:
    """The database refuses everybody meanwhile, and has cut off who was there."""

    def allow(whether: bool) -> None:
        with psycopg.connect(server_url, autocommit=True) as connection:
            connection.execute(f"ALTER DATABASE {database} ALLOW_CONNECTIONS {whether}")
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
                [database],
            )

    allow(False)
    try:
        yield
    finally:
        allow(True)


@contextmanager
def locked(database_url: str) -> Iterator[None]:
    """Somebody holds the rows of all tables."""
    with psycopg.connect(database_url) as connection:
        connection.execute("SELECT 1 FROM tables FOR UPDATE")
        yield


def eventually(condition: Callable[[], bool]) -> None:
    """Ask again until it holds; each question is a request, so this does not spin."""
    give_up = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < give_up, "it never came to hold"


class TestIndex:
    def test_everything_answers_503_and_recovers(
        self, http, api, postgres_server, database_url, caplog
    ):
        caplog.set_level(logging.INFO, "tidegate")
        api.post("/tables", json=table_body()).raise_for_status()
        with closed(postgres_server.url, urlsplit(database_url).path.strip("/")):
            for method, path, body, _ in CALLS:
                answer = api.request(method, path, json=body)
                assert (answer.status_code, answer.json()["code"]) == (503, "index-unavailable")
                assert int(answer.headers["retry-after"]) >= 1
                assert answer.json()["retryable"] is True
                assert "SELECT" not in answer.text
                assert "psycopg" not in answer.text
            assert http.get("/healthz").status_code == 200
            unready = http.get("/readyz")
            assert (unready.status_code, unready.json()["code"]) == (503, "index-unavailable")

        def causes() -> list[str]:
            events = [each.msg for each in caplog.records if each.name == "tidegate.access"]
            return [event.cause for event in events if event.status == 503]

        # An answer is out before its line is written.
        eventually(lambda: len(causes()) == len(CALLS) + 1)
        assert all("Error" in cause for cause in causes()), "the log says what the client is spared"

        eventually(lambda: http.get("/readyz").status_code == 200)
        for method, path, body, expected in CALLS:
            assert api.request(method, path, json=body).status_code == expected, path

    def test_a_503_to_a_commit_has_its_id(self, api, postgres_server, database_url):
        api.post("/tables", json=table_body()).raise_for_status()
        with closed(postgres_server.url, urlsplit(database_url).path.strip("/")):
            answer = api.post(f"/tables/{TABLE}/commits", json=proposal(add()))
        assert answer.json()["transaction_id"]


class TestStorage:
    @pytest.mark.parametrize("catalog_managed", [False, True])
    def test_without_its_folder_nothing_lands_and_later_it_does(
        self, http, api, tmp_path, catalog_managed
    ):
        api.post("/tables", json=table_body(catalog_managed=False)).raise_for_status()
        warehouse, away = tmp_path / "warehouse", tmp_path / "away"
        body = proposal(add(), transaction_id="t-1")
        warehouse.rename(away)
        try:
            unready = http.get("/readyz")
            assert (unready.status_code, unready.json()["code"]) == (503, "storage-unavailable")
            answer = api.post(f"/tables/{TABLE}/commits", json=body)
            assert (answer.status_code, answer.json()["code"]) == (503, "storage-unavailable")
            assert answer.json()["transaction_id"] == "t-1"
            created = api.post(
                "/tables", json=table_body("main.air.x", catalog_managed=catalog_managed)
            )
            assert (created.status_code, created.json()["code"]) == (503, "storage-unavailable")
            assert str(tmp_path) not in answer.text
        finally:
            away.rename(warehouse)
        eventually(lambda: http.get("/readyz").status_code == 200)
        answer = api.post(f"/tables/{TABLE}/commits", json=body)
        assert (answer.status_code, answer.json()["version"]) == (201, 1)

    def test_an_unreadable_foreign_version_quarantines(self, api):
        location = api.post("/tables", json=table_body()).json()["location"]
        log = Path(location.removeprefix("file://")) / "_delta_log"
        (log / f"{1:020}.json").write_text("{not json\n")

        answer = api.post(f"/tables/{TABLE}/commits", json=proposal(add()))

        assert (answer.status_code, answer.json()["code"]) == (503, "table-quarantined")
        assert answer.headers["retry-after"] == "60"
        head = api.get(f"/tables/{TABLE}").json()
        assert head["state"] == "quarantined"
        assert "version 1" in head["state_reason"]
        assert api.post(f"/tables/{TABLE}/scan", json={}).status_code == 200


class TestDeadline:
    def test_a_commit_that_waits_too_long_is_unknown_and_told_later(
        self, start_service, database_url
    ):
        # Making the table has to fit, on a disk that is busy with others.
        service = start_service(deadline_seconds=2.0)
        with DocumentedClient(base_url=f"{service.url}/api/v1", timeout=40) as api:
            api.post("/tables", json=table_body()).raise_for_status()
            body = proposal(add(), transaction_id="t-1")
            with locked(database_url):
                answer = api.post(f"/tables/{TABLE}/commits", json=body)
                assert answer.status_code == 503
                assert answer.json()["code"] == "commit-state-unknown"
                assert answer.json()["transaction_id"] == "t-1"
                pending = api.get(f"/tables/{TABLE}/transactions/t-1").json()
                assert pending["state"] == "pending"
            # The section outlived its request; sending the same again tells what became of it.
            answer = api.post(f"/tables/{TABLE}/commits", json=body)
            assert answer.json()["version"] == 1
            assert answer.status_code in (200, 201)

    def test_a_client_that_leaves_does_not_cancel_its_commit(self, service, api, database_url):
        api.post("/tables", json=table_body()).raise_for_status()
        with locked(database_url):
            with pytest.raises(httpx.ReadTimeout):
                httpx.post(
                    f"{service.url}/api/v1/tables/{TABLE}/commits",
                    json=proposal(add(), transaction_id="t-1"),
                    timeout=0.3,
                )
            assert api.get(f"/tables/{TABLE}/transactions/t-1").json()["state"] == "pending"
        # The lock is handed on in order, so this one comes second.
        api.post(f"/tables/{TABLE}/commits", json=proposal(add("month=5/b"))).raise_for_status()
        found = api.get(f"/tables/{TABLE}/transactions/t-1").json()
        assert (found["state"], found["version"]) == ("committed", 1)


class TestStopping:
    def test_what_is_under_way_finishes_and_nothing_new_begins(self, service, database_url):
        with DocumentedClient(base_url=service.url, timeout=40) as client:
            client.post("/api/v1/tables", json=table_body()).raise_for_status()
            answers = []
            with locked(database_url):
                commit = threading.Thread(
                    target=lambda: answers.append(
                        httpx.post(
                            f"{service.url}/api/v1/tables/{TABLE}/commits",
                            json=proposal(add(), transaction_id="t-1"),
                            timeout=40,
                        )
                    )
                )
                commit.start()
                pending = f"/api/v1/tables/{TABLE}/transactions/t-1"
                eventually(lambda: client.get(pending).status_code == 200)
                service.stop()
                eventually(lambda: client.get("/readyz").status_code == 503)
                unready = client.get("/readyz")
                assert (unready.status_code, unready.json()["code"]) == (503, "shutting-down")
                refused = client.post("/api/v1/tables", json=table_body("a.b.c"))
                assert (refused.status_code, refused.json()["code"]) == (503, "shutting-down")
                assert client.get("/healthz").status_code == 200
            commit.join()
        assert (answers[0].status_code, answers[0].json()["version"]) == (201, 1)
        service.join()
        with pytest.raises(ConnectionRefusedError):
            exchange(service.url, b"")

    def test_what_cannot_finish_in_time_is_told_that_it_is_unknown(
        self, start_service, database_url
    ):
        service = start_service(ServerLimits(drain_s=0.2))
        with DocumentedClient(base_url=service.url, timeout=40) as client:
            client.post("/api/v1/tables", json=table_body()).raise_for_status()
            answers = []
            body = proposal(add(), transaction_id="t-1")
            with locked(database_url):
                commit = threading.Thread(
                    target=lambda: answers.append(
                        client.post(f"/api/v1/tables/{TABLE}/commits", json=body)
                    )
                )
                commit.start()
                pending = f"{service.url}/api/v1/tables/{TABLE}/transactions/t-1"
                eventually(lambda: httpx.get(pending).status_code == 200)
                service.stop()
                commit.join()
                service.join()
        (answer,) = answers
        assert (answer.status_code, answer.json()["code"]) == (503, "commit-state-unknown")
        assert answer.json()["transaction_id"] == "t-1"


def test_two_overwrites_of_one_month_race_and_one_is_told_so(shared_api, flights):
    """The main promise, end to end over HTTP."""
    shared_api.post(f"/tables/{flights}/commits", json=proposal(add())).raise_for_status()
    answers = []

    def overwrite(name: str) -> None:
        with DocumentedClient(base_url=shared_api.base_url, timeout=40) as api:
            body = proposal(
                remove(),
                add(f"month=5/{name}.parquet"),
                read_version=1,
                reads={"predicates": ["month = 5"], "files": ["month=5/a.parquet"]},
            )
            answers.append(api.post(f"/tables/{flights}/commits", json=body))

    racers = [threading.Thread(target=overwrite, args=[name]) for name in "xyz"]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()

    assert sorted(answer.status_code for answer in answers) == [201, 409, 409]
    for loser in (answer.json() for answer in answers if answer.status_code == 409):
        assert loser["conflict"]["version"] == 2
        assert loser["error_class"].endswith("Exception")
