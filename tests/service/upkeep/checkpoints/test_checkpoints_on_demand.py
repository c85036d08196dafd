"""Checkpoints over HTTP and by `tidegate table checkpoint`."""

import json
from pathlib import Path

from tests.builders.flights import add, proposal
from tests.service.process.cli.command_line import invoke


def test_one_is_written(shared_api, flights):
    shared_api.post(f"/tables/{flights}/commits", json=proposal(add()))
    found = shared_api.post(f"/tables/{flights}/checkpoint", json={}).json()
    assert {name: found[name] for name in ("table", "version", "kind", "files")} == {
        "table": flights,
        "version": 1,
        "kind": "classic",
        "files": 1,
    }
    location = shared_api.get(f"/tables/{flights}").json()["location"]
    log = Path(location.removeprefix("file://")) / "_delta_log"
    pointer = json.loads((log / "_last_checkpoint").read_text())
    assert (pointer["version"], pointer["size"]) == (1, found["num_actions"])


def test_of_a_version(shared_api, flights):
    shared_api.post(f"/tables/{flights}/commits", json=proposal(add()))
    path = f"/tables/{flights}/checkpoint"
    assert shared_api.post(path, json={"version": 0}).json()["version"] == 0
    assert shared_api.post(path, json={"version": 7}).json()["code"] == "version-not-found"
    assert shared_api.post(path, json={"version": -1}).status_code == 422


def test_beside_a_damaged_one(shared_api, flights):
    location = shared_api.get(f"/tables/{flights}").json()["location"]
    log = Path(location.removeprefix("file://")) / "_delta_log"
    damaged = log / f"{0:020d}.checkpoint.parquet"
    damaged.write_bytes(b"PAR1")
    refused = shared_api.post(f"/tables/{flights}/checkpoint", json={})
    problem = refused.json()
    assert (refused.status_code, problem["code"]) == (422, "broken-log")
    assert problem["retryable"] is False
    assert damaged.name in problem["detail"]
    assert problem["hint"].startswith("move the files of this checkpoint out of the log")
    damaged.unlink()
    assert shared_api.post(f"/tables/{flights}/checkpoint", json={}).status_code == 200


def test_by_the_command(shared_server, flights):
    shown = invoke("table", "checkpoint", flights, "--url", shared_server)
    assert shown.exit_code == 0, shown.output
    assert shown.output.startswith("version 0: classic, 2 actions, 1 of 1 files written, ")
    shown = invoke(
        "table", "checkpoint", flights, "--version", "0", "--json", "--url", shared_server
    )
    assert json.loads(shown.output)["version"] == 0
