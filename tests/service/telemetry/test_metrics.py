"""`/metrics` of the real service: what was done to it is what it says."""

import re
import uuid
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.builders.flights import add, table_body
from tests.repository import ROOT
from tests.servers.server import StartService
from tests.service.api.http.test_api_unavailable import closed, eventually, locked
from tidegate_service.core.observe.telemetry import Outcome, Phase

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples(client: httpx.Client) -> Samples:
    answer = client.get("/metrics")
    assert answer.status_code == 200
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def value(found: Samples, name: str, **labels: str) -> float:
    return found.get((name, frozenset(labels.items())), 0.0)


def new_table(client: httpx.Client, *, catalog_managed: bool = False) -> str:
    name = f"main.air.{uuid.uuid4().hex}"
    body = table_body(name) | {"catalog_managed": catalog_managed}
    assert client.post("/api/v1/tables", json=body).status_code == 201
    return name


def propose(client: httpx.Client, table: str, **body: object) -> httpx.Response:
    return client.post(f"/api/v1/tables/{table}/commits", json={"operation": "WRITE", **body})


class TestProposals:
    @pytest.mark.parametrize("catalog_managed", [False, True])
    def test_each_is_counted_by_kind_and_outcome(self, http, catalog_managed):
        kind = "catalog-managed" if catalog_managed else "plain"
        table = new_table(http, catalog_managed=catalog_managed)
        first = {"transaction_id": "t-1", "actions": [add("a")]}

        assert propose(http, table, **first).status_code == 201
        assert propose(http, table, **first).status_code == 200
        assert propose(http, table, actions=[], skip_if_empty=True).status_code == 200
        assert propose(http, table, actions=[add("b"), add("b")]).status_code == 422
        late = {"read_version": 0, "reads": {"whole_table": True}, "actions": [add("c")]}
        assert propose(http, table, **late).status_code == 409
        reused = {"transaction_id": "t-1", "actions": [add("d")]}
        assert propose(http, table, **reused).status_code == 422

        found = samples(http)
        outcomes = {
            outcome: value(found, "tidegate_proposals_total", kind=kind, outcome=outcome)
            for outcome in Outcome
        }
        expected = {
            Outcome.LANDED: 1,
            Outcome.REPLAYED: 1,
            Outcome.EMPTY: 1,
            Outcome.INVALID: 1,
            Outcome.CONFLICT: 1,
            Outcome.REFUSED: 1,
        }
        assert {outcome: count for outcome, count in outcomes.items() if count} == expected
        for outcome, code in (
            ("conflict", "concurrent-append"),
            ("invalid", "duplicate-action"),
            ("refused", "transaction-id-reused"),
        ):
            labels = {"outcome": outcome, "code": code}
            assert value(found, "tidegate_proposal_problems_total", **labels) == 1

    def test_each_phase_of_a_plain_commit_is_timed_once(self, http):
        table = new_table(http)
        before = samples(http)
        assert propose(http, table, actions=[add("a")]).status_code == 201
        after = samples(http)
        for phase in Phase:
            counts = [
                value(found, "tidegate_commit_phase_seconds_count", phase=phase)
                for found in (before, after)
            ]
            assert counts[1] == counts[0] + 1, phase
        spent = {
            phase: value(after, "tidegate_commit_phase_seconds_sum", phase=phase)
            - value(before, "tidegate_commit_phase_seconds_sum", phase=phase)
            for phase in Phase
        }
        assert 0 < sum(spent.values()) - spent[Phase.TOTAL] <= spent[Phase.TOTAL]


class TestLogs:
    def test_foreign_commits_and_quarantines_are_counted(self, http):
        table = new_table(http)
        head = http.get(f"/api/v1/tables/{table}").json()
        folder = head["location"].removeprefix("file://") + "/_delta_log"
        for version in (1, 2):
            with open(f"{folder}/{version:020d}.json", "x") as log:
                log.write('{"commitInfo":{"operation":"WRITE"}}\n')
        assert propose(http, table, actions=[add("a")]).json()["version"] == 3
        with open(f"{folder}/{4:020d}.json", "x") as log:
            log.write("no action\n")
        assert propose(http, table, actions=[add("b")]).status_code == 503

        found = samples(http)
        assert value(found, "tidegate_foreign_commits_total") == 2
        assert value(found, "tidegate_quarantines_total") == 1
        assert value(found, "tidegate_proposals_total", kind="plain", outcome="unavailable") == 1

    def test_published_versions_and_their_lag(self, start_service: StartService, tmp_path):
        service = start_service(publish_interval_seconds=60)
        with httpx.Client(base_url=service.url) as client:
            table = new_table(client, catalog_managed=True)
            while (head := client.get(f"/api/v1/tables/{table}").json())["published_version"] < 0:
                pass
            folder = head["location"]
            log = f"{folder.removeprefix('file://')}/_delta_log"
            # Something else in the way of version 1: nothing after it can be published.
            with open(f"{log}/{1:020d}.json", "x"):
                pass
            assert propose(client, table, actions=[add("a")]).status_code == 201
            while client.get(f"/api/v1/tables/{table}").json()["state"] != "quarantined":
                pass
            found = samples(client)
        assert value(found, "tidegate_published_versions_total") == 1
        assert value(found, "tidegate_quarantines_total") == 1
        assert value(found, "tidegate_unpublished_versions") == 1
        assert value(found, "tidegate_publish_lag_seconds") == 0
        labels = {"kind": "catalog-managed", "state": "quarantined"}
        assert value(found, "tidegate_tables", **labels) == 1


class TestRequests:
    def test_they_are_counted_by_template_and_never_by_what_the_caller_wrote(self, http):
        http.get("/api/v1/tables/no.such.table")
        http.get(f"/nothing/{uuid.uuid4()}")
        http.request("MKCOL", "/healthz")
        http.get("/healthz")

        name = "tidegate_request_duration_seconds_count"
        found = {labels: count for (kind, labels), count in samples(http).items() if kind == name}
        assert found == {
            frozenset(labels.items()): 1
            for labels in (
                {"method": "GET", "route": "/api/v1/tables/{table}", "status": "4xx"},
                {"method": "GET", "route": "unmatched", "status": "4xx"},
                {"method": "other", "route": "/healthz", "status": "4xx"},
                {"method": "GET", "route": "/healthz", "status": "2xx"},
            )
        }

    def test_a_scrape_sees_itself_under_way_and_nothing_else(self, http):
        found = samples(http)
        assert value(found, "tidegate_requests_in_flight") == 1
        assert value(found, "tidegate_commit_sections") == 0
        assert value(found, "tidegate_commit_queue_depth") == 0
        assert value(found, "tidegate_index_up") == 1
        assert value(found, "tidegate_pool_size") == 16

    def test_without_an_index_it_still_answers(self, http, postgres_server, database_url):
        with closed(postgres_server.url, database_url.rpartition("/")[2].partition("?")[0]):
            found = samples(http)
        assert value(found, "tidegate_index_up") == 0
        names = {name for name, _ in found}
        assert not names & {"tidegate_tables", "tidegate_publish_lag_seconds"}

    def test_a_census_is_taken_once_for_many_scrapes(self, http):
        def tables() -> float:
            return value(samples(http), "tidegate_tables", kind="plain", state="active")

        new_table(http)
        assert tables() == 1
        new_table(http)
        assert tables() == 1

    def test_those_who_wait_for_their_turn_are_counted(self, http, database_url):
        table = new_table(http)
        with ThreadPoolExecutor(3) as pool, locked(database_url):
            # Those that come together go together: the first one's group waits for the lock.
            waiting = [pool.submit(propose, http, table, actions=[add("0")])]
            eventually(lambda: value(samples(http), "tidegate_commit_sections") == 1)
            waiting += [pool.submit(propose, http, table, actions=[add(str(i))]) for i in (1, 2)]
            eventually(lambda: value(samples(http), "tidegate_commit_queue_depth") == 2)
            found = samples(http)
            assert value(found, "tidegate_commit_sections") == 3
            assert value(found, "tidegate_pool_connections", state="in-use") >= 1
            assert not any(done.done() for done in waiting)
        assert sorted(done.result().json()["version"] for done in waiting) == [1, 2, 3]


def documented() -> dict[str, set[str]]:
    """The names in docs/operations.md, each with its labels."""
    text = (ROOT / "docs" / "operations.md").read_text()
    rows = re.findall(r"^\| `(tidegate_\w+)` \| \w+ \|([^|]*)\|", text, re.MULTILINE)
    return {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows}


def test_every_metric_is_documented_and_the_other_way_round(http):
    table = new_table(http)
    assert propose(http, table, actions=[add("a"), add("a")]).status_code == 422
    exposed: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(http.get("/metrics").text):
        name = family.name + ("_total" if family.type == "counter" else "")
        name += "_info" if family.type == "info" else ""
        labels = exposed.setdefault(name, set())
        for sample in family.samples:
            labels |= sample.labels.keys() - {"le"}
    ours = {name: labels for name, labels in exposed.items() if name.startswith("tidegate_")}
    assert documented() == ours
    assert {"process_resident_memory_bytes", "python_info"} <= exposed.keys()
