"""A running service keeps logs up by itself, and shows how they stand."""

import time
from pathlib import Path

import httpx
import msgspec
import pytest
from typer.testing import CliRunner

from tests.builders.flights import TABLE, add, proposal, table_body
from tests.service.serving import running
from tidegate_service.api.answers.rendering import upkeep_answer
from tidegate_service.cli.commands import cli
from tidegate_service.cli.tables import upkeep_rows
from tidegate_service.core.observe.telemetry import UpkeepKind
from tidegate_service.core.ports.records import TableHead, TableState
from tidegate_service.core.ports.upkeep.upkeep import UpkeepRecord
from tidegate_service.core.vacuum.commits import VACUUM
from tidegate_service.settings import Settings

PATIENCE_S = 30.0
HEAD = TableHead(
    id="0f0c7c1e-6f0b-4f5e-9d55-7f6f2b8a4c11",
    name=TABLE,
    location="file:///lake/t",
    catalog_managed=False,
    state=TableState.ACTIVE,
    state_reason=None,
    quarantine_cause=None,
    latest_version=9,
    published_version=9,
    latest_timestamp=0,
    num_files=0,
    size_bytes=0,
    first_version=0,
    epoch=0,
)


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
    files = [(log / f"{version:020d}.json").stat().st_size for version in (0, 1)]
    nothing = {"checkpoint_version": None, "checkpoint_bytes": None}
    assert found["opening"] == {**nothing, "commits": 2, "commit_bytes": sum(files)}
    assert found["troubles"] == {}
    for name in ("cleaned_up_before", "compaction_version", "dropped_before"):
        assert found[name] is None
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


@pytest.mark.slow
def test_it_can_be_switched_off(settings: Settings):
    without = settings.model_copy(update={"upkeep_share": 0.0})
    with running(without) as service, httpx.Client(base_url=f"{service.url}/api/v1") as api:
        location = api.post("/tables", json=table_body()).json()["location"]
        time.sleep(3)
        log = Path(location.removeprefix("file://")) / "_delta_log"
        assert [file.name for file in log.iterdir()] == [f"{0:020d}.json"]
        assert upkeep_of(api)["checksum_version"] is None


def test_what_each_kind_of_upkeep_came_to():
    kinds = (UpkeepKind.CLEAN_UP, UpkeepKind.COMPACTION, UpkeepKind.EXPIRED_VERSIONS, VACUUM)
    standing = {
        kind: UpkeepRecord(version=number, done_ms=number * 1_000, failures=0, trouble=None)
        for number, kind in enumerate(kinds, 1)
    }
    shown = msgspec.to_builtins(upkeep_answer(HEAD, standing, None))
    assert (shown["cleaned_up_before"], shown["clean_up_at"]) == (1, 1_000)
    assert (shown["compaction_version"], shown["compaction_at"]) == (2, 2_000)
    assert (shown["dropped_before"], shown["dropped_at"]) == (3, 3_000)
    assert (shown["vacuum_version"], shown["vacuum_at"]) == (4, 4_000)
    rows = dict(upkeep_rows(shown))
    assert rows["to be opened"] == "not known: the store does not say"
    assert rows["checkpoint"] == "none yet"
    assert rows["compacted up to"].startswith("2, ")
    assert rows["dropped from the index before"].startswith("3, ")


def test_what_there_is_to_open(api: httpx.Client, server: str):
    location = api.post("/tables", json=table_body()).json()["location"]
    log = Path(location.removeprefix("file://")) / "_delta_log"
    for number in range(3):
        if number == 2:
            written = api.post(f"/tables/{TABLE}/checkpoint", json={}).json()
        body = proposal(add(f"month=5/{number}"))
        assert api.post(f"/tables/{TABLE}/commits", json=body).status_code == 201
    size = (log / f"{3:020d}.json").stat().st_size
    assert upkeep_of(api)["opening"] == {
        "checkpoint_version": written["version"],
        "checkpoint_bytes": written["bytes"],
        "commits": 1,
        "commit_bytes": size,
    }
    shown = CliRunner().invoke(cli, ["table", "show", TABLE, "--url", server])
    expected = f"checkpoint 2 of {written['bytes']} bytes, 1 commits of {size} bytes"
    assert expected in " ".join(shown.output.split())
    log.rename(log.with_name("elsewhere"))
    log.write_text("no folder")
    assert upkeep_of(api)["opening"] is None


def test_a_vacuum_is_shown(api: httpx.Client):
    api.post("/tables", json=table_body())
    assert upkeep_of(api)["vacuum_version"] is None
    told = api.post(f"/tables/{TABLE}/vacuum", json={})
    assert told.status_code == 200, told.text
    found = upkeep_of(api)
    assert found["vacuum_version"] == 2
    assert found["vacuum_at"] is not None
