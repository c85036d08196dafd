"""A running service keeps logs up by itself, and shows how they stand."""

import time
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from tests.builders.flights import TABLE, add, proposal, table_body
from tests.service.serving import running
from tidegate_service.cli.commands import cli
from tidegate_service.settings import Settings

PATIENCE_S = 30.0


def upkeep_of(api: httpx.Client) -> dict[str, object]:
    answer = api.get(f"/tables/{TABLE}/upkeep")
    assert answer.status_code == 200
    return answer.json()


def until_checksum(api: httpx.Client, version: int) -> dict[str, object]:
    until = time.monotonic() + PATIENCE_S
    while (found := upkeep_of(api))["checksum_version"] != version:
        assert time.monotonic() < until, found
        time.sleep(0.1)
    return found


@pytest.mark.parametrize("catalog_managed", [False, True])
def test_checksums_follow_commits(api: httpx.Client, server: str, catalog_managed: bool):
    body = table_body(catalog_managed=catalog_managed)
    location = api.post("/tables", json=body).json()["location"]
    log = Path(location.removeprefix("file://")) / "_delta_log"
    until_checksum(api, 0)
    assert api.post(f"/tables/{TABLE}/commits", json=proposal(add("a"))).status_code == 201
    found = until_checksum(api, 1)
    assert (log / f"{1:020d}.crc").exists()
    assert found["table"] == TABLE
    assert found["troubles"] == {}
    assert found["cleaned_up_before"] is None
    shown = CliRunner().invoke(cli, ["table", "show", TABLE, "--url", server])
    assert shown.exit_code == 0, shown.output
    assert "commits after it" in shown.output
    assert "checksum" in shown.output
    as_json = CliRunner().invoke(cli, ["table", "show", TABLE, "--url", server, "--json"])
    assert '"checksum_version": 1' in as_json.output
    metrics = httpx.get(f"{server}/metrics").text
    assert 'tidegate_upkeep_runs_total{kind="checksum",outcome="done"}' in metrics


def test_there_is_none_of_an_unknown_table(api: httpx.Client):
    answer = api.get("/tables/main.air.nowhere/upkeep")
    assert (answer.status_code, answer.json()["code"]) == (404, "table-not-found")


def test_it_can_be_switched_off(settings: Settings):
    without = settings.model_copy(update={"upkeep_share": 0.0})
    with running(without) as service, httpx.Client(base_url=f"{service.url}/api/v1") as api:
        location = api.post("/tables", json=table_body()).json()["location"]
        time.sleep(3)
        log = Path(location.removeprefix("file://")) / "_delta_log"
        assert [file.name for file in log.iterdir()] == [f"{0:020d}.json"]
        assert upkeep_of(api)["checksum_version"] is None
