"""Reads of a plain table, over HTTP, after another writer has committed past the service."""

import json
import uuid
from pathlib import Path

import httpx
import pytest

from tests.builders.flights import add, proposal, table_body

THEIRS = "month=5/theirs.parquet"
APP, DOMAIN = "nightly", "their.domain"
SUPPORTED = {"delta.feature.domainMetadata": "supported"}


class Lake:
    """A table of the service, and a writer beside it."""

    def __init__(self, api: httpx.Client, name: str) -> None:
        self.api, self.name = api, name
        made = api.post("/tables", json=table_body(name, properties=SUPPORTED))
        assert made.status_code == 201, made.text
        self.folder = Path(made.json()["location"].removeprefix("file://"))

    def file(self, version: int) -> Path:
        return self.folder / "_delta_log" / f"{version:020d}.json"

    def commit_past_the_service(self, version: int) -> None:
        actions = [
            {"commitInfo": {"operation": "THEIRS", "timestamp": 1_800_000_000_000}},
            {"txn": {"appId": APP, "version": version}},
            {"domainMetadata": {"domain": DOMAIN, "configuration": "{}", "removed": False}},
            add(f"{THEIRS}{version}"),
        ]
        lines = "".join(json.dumps(action) + "\n" for action in actions)
        self.file(version).write_text(lines)

    def get(self, path: str, **query: object) -> httpx.Response:
        answer = self.api.get(f"/tables/{self.name}{path}", params=query)
        assert answer.status_code == 200, answer.text
        return answer

    def post(self, path: str, body: object) -> httpx.Response:
        answer = self.api.post(f"/tables/{self.name}{path}", json=body)
        assert answer.status_code == 200, answer.text
        return answer


@pytest.fixture
def lake(shared_api: httpx.Client) -> Lake:
    return Lake(shared_api, f"main.air.{uuid.uuid4().hex}")


def head(lake: Lake) -> int:
    return lake.get("").json()["latest_version"]


def scan(lake: Lake) -> int:
    found = lake.post("/scan", {}).json()
    assert f"{THEIRS}{found['version']}" in {file["add"]["path"] for file in found["files"]}
    return found["version"]


def scan_of_the_version(lake: Lake) -> int:
    return lake.post("/scan", {"version": 1}).json()["version"]


def scan_by_time(lake: Lake) -> int:
    return lake.post("/scan", {"timestamp": 1_900_000_000_000}).json()["version"]


def history(lake: Lake) -> int:
    newest = lake.get("/commits").json()["commits"][0]
    assert newest["operation"] == "THEIRS"
    return newest["version"]


def history_to_the_version(lake: Lake) -> int:
    return lake.get("/commits", to_version=1).json()["commits"][0]["version"]


def content(lake: Lake) -> int:
    assert lake.get("/commits/1").content == lake.file(1).read_bytes()
    return 1


def app_transaction(lake: Lake) -> int:
    return lake.get(f"/app-transactions/{APP}").json()["version"]


def domain(lake: Lake) -> int:
    assert lake.get(f"/domains/{DOMAIN}").json()["configuration"] == "{}"
    return 1


def unity(lake: Lake) -> int:
    path = "/api/2.1/unity-catalog/delta/v1/catalogs/main/schemas/air/tables/"
    answer = lake.api.get(httpx.URL(str(lake.api.base_url)).join(path + lake.name.split(".")[-1]))
    assert answer.status_code == 200, answer.text
    return answer.json()["latest-table-version"]


def unity_classic(lake: Lake) -> int:
    path = f"/api/2.1/unity-catalog/tables/{lake.name}"
    answer = lake.api.get(httpx.URL(str(lake.api.base_url)).join(path))
    assert answer.status_code == 200, answer.text
    return int(answer.json()["properties"]["delta.lastUpdateVersion"])


def checkpoint(lake: Lake) -> int:
    return lake.post("/checkpoint", {}).json()["version"]


def manifests(lake: Lake) -> int:
    return lake.post("/manifest", {}).json()["version"]


@pytest.mark.parametrize(
    "read",
    [
        head,
        scan,
        scan_of_the_version,
        scan_by_time,
        history,
        history_to_the_version,
        content,
        app_transaction,
        domain,
        unity,
        unity_classic,
        checkpoint,
        manifests,
    ],
)
def test_a_read_finds_what_others_have_committed(lake: Lake, read) -> None:
    assert lake.get("").json()["latest_version"] == 0
    lake.commit_past_the_service(1)
    assert read(lake) == 1


def test_as_often_as_they_commit(lake: Lake) -> None:
    for version in range(1, 6):
        lake.commit_past_the_service(version)
        assert head(lake) == scan(lake) == version


def test_what_was_read_after_it_is_no_conflict(lake: Lake) -> None:
    """As a command does that reads the table and commits what it made of it."""
    lake.commit_past_the_service(1)
    read_version = head(lake)
    sent = proposal(
        {"remove": {"path": f"{THEIRS}1", "deletionTimestamp": 1, "dataChange": True}},
        read_version=read_version,
        reads={"whole_table": True},
    )
    answer = lake.api.post(f"/tables/{lake.name}/commits", json=sent)
    assert (answer.status_code, answer.json()["version"]) == (201, 2)


def test_a_version_of_theirs_that_cannot_be_read_is_found_by_a_read(lake: Lake) -> None:
    lake.commit_past_the_service(1)
    lake.file(2).write_text("no action\n")
    found = lake.get("").json()
    assert (found["latest_version"], found["state"]) == (1, "quarantined")
    assert "version 2, written by another writer, cannot be read" in found["state_reason"]


def test_a_table_that_was_made_anew_under_the_name(lake: Lake) -> None:
    """The instance remembers which table a name means."""
    lake.get("")
    assert lake.api.delete(f"/tables/{lake.name}").status_code == 204
    assert lake.api.get(f"/tables/{lake.name}").status_code == 404
    lake.commit_past_the_service(1)
    asked = {"name": lake.name, "location": lake.folder.as_uri()}
    assert lake.api.post("/tables/register", json=asked).status_code == 201
    lake.commit_past_the_service(2)
    assert head(lake) == 2
