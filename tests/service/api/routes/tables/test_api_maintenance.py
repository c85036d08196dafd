"""Verify, rebuild and release over HTTP and by `tidegate`."""

import json
from pathlib import Path

import pytest

from tests.builders.flights import add, proposal
from tests.service.process.cli.command_line import invoke


def commit(api, table, *actions, **fields):
    answer = api.post(f"/tables/{table}/commits", json=proposal(*actions, **fields))
    assert answer.status_code == 201, answer.text
    return answer.json()


def log_file(api, table, version):
    location = api.get(f"/tables/{table}").json()["location"]
    return Path(location.removeprefix("file://")) / "_delta_log" / f"{version:020d}.json"


class TestVerify:
    def test_what_is_sound(self, shared_api, flights):
        commit(shared_api, flights, add())
        assert shared_api.get(f"/tables/{flights}/verify").json() == {
            "table": flights,
            "consistent": True,
            "from_version": 0,
            "through_version": 1,
            "next_version": None,
            "cleaned_up": 0,
            "not_ingested": 0,
            "differences": [],
        }

    def test_what_differs(self, shared_api, flights):
        commit(shared_api, flights, add())
        file = log_file(shared_api, flights, 1)
        file.write_bytes(file.read_bytes() + b"\n")
        found = shared_api.get(f"/tables/{flights}/verify").json()
        assert not found["consistent"]
        assert [(one["version"], one["kind"]) for one in found["differences"]] == [(1, "storage")]

    def test_it_goes_on_where_the_last_page_ended(self, shared_api, flights):
        commit(shared_api, flights, add())
        first = shared_api.get(f"/tables/{flights}/verify", params={"limit": 1}).json()
        assert first["next_version"] == 1
        rest = shared_api.get(f"/tables/{flights}/verify", params={"from_version": 1}).json()
        assert (rest["from_version"], rest["through_version"]) == (1, 1)

    @pytest.mark.parametrize("given", [{"from_version": 7}, {"from_version": -1}, {"limit": 0}])
    def test_what_cannot_be_asked(self, shared_api, flights, given):
        answer = shared_api.get(f"/tables/{flights}/verify", params=given)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")


class TestRebuildAndRelease:
    @pytest.mark.parametrize("call", ["rebuild", "release"])
    def test_a_sound_table_stays_as_it_is(self, shared_api, flights, call):
        commit(shared_api, flights, add())
        head = shared_api.get(f"/tables/{flights}").json()
        answer = shared_api.post(f"/tables/{flights}/{call}")
        told = answer.json()
        assert (told.pop("lost", []), told.pop("unknown_ids", None)) == ([], None)
        assert (answer.status_code, told) == (200, head)

    def test_a_quarantine_ends_when_its_cause_does(self, shared_api, flights):
        bad = log_file(shared_api, flights, 1)
        bad.write_text("not json\n")
        answer = shared_api.post(f"/tables/{flights}/commits", json=proposal(add()))
        assert (answer.status_code, answer.json()["code"]) == (503, "table-quarantined")
        assert answer.json()["retryable"] is False
        for call in ("rebuild", "release"):
            answer = shared_api.post(f"/tables/{flights}/{call}")
            assert (answer.status_code, answer.json()["code"]) == (422, "broken-log")
        bad.unlink()
        assert shared_api.post(f"/tables/{flights}/release").json()["state"] == "active"
        assert commit(shared_api, flights, add())["version"] == 1

    @pytest.mark.parametrize(
        ("method", "call"), [("GET", "verify"), ("POST", "rebuild"), ("POST", "release")]
    )
    def test_of_a_table_that_is_not_there(self, shared_api, method, call):
        answer = shared_api.request(method, f"/tables/a.b.c/{call}")
        assert (answer.status_code, answer.json()["code"]) == (404, "table-not-found")


class TestCommands:
    @pytest.fixture
    def tidegate(self, shared_server):
        return lambda *arguments: invoke(*arguments, "--url", shared_server)

    def test_verify_says_what_differs_by_its_exit_status_too(self, tidegate, shared_api, flights):
        commit(shared_api, flights, add())
        sound = tidegate("verify", flights)
        assert (sound.exit_code, sound.stdout) == (0, "2 versions compared: no difference\n")
        log_file(shared_api, flights, 1).unlink()
        damaged = tidegate("verify", flights)
        assert damaged.exit_code == 1
        assert "its file is missing from the log" in damaged.stdout
        assert damaged.stdout.endswith("2 versions compared: 1 differences\n")
        found = json.loads(tidegate("verify", flights, "--json").stdout)
        assert [one["version"] for one in found["differences"]] == [1]

    @pytest.mark.parametrize("command", [["rebuild"], ["table", "release"]])
    def test_the_others_show_the_table(self, tidegate, shared_api, flights, command):
        commit(shared_api, flights, add())
        done = tidegate(*command, flights)
        assert done.exit_code == 0, done.stderr
        assert "version         1 (published 1)" in done.stdout
        shown = json.loads(tidegate(*command, flights, "--json").stdout)
        assert (shown.pop("lost", []), shown.pop("unknown_ids", None)) == ([], None)
        assert shown == shared_api.get(f"/tables/{flights}").json()
