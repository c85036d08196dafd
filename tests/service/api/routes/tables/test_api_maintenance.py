"""Verify, rebuild and release over HTTP and by `tidegate`."""

import json
from pathlib import Path

import pytest

from tests.builders.flights import add, proposal
from tests.service.process.cli.command_line import invoke
from tidegate_service.cli import maintenance


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


class TestVerifyFiles:
    def test_an_answer_for_some_files_and_one_at_the_end(self, shared_api, flights):
        place = log_file(shared_api, flights, 0).parent.parent / "month=5"
        place.mkdir()
        (place / "a.parquet").write_bytes(bytes(10))
        commit(shared_api, flights, add(), add("month=5/b.parquet"))
        answer = shared_api.get(f"/tables/{flights}/verify/files")
        assert answer.headers["content-type"] == "application/x-ndjson"
        looking, ended = map(json.loads, answer.text.splitlines())
        rest = {"deletion_vectors": 0, "skipped": 0, "code": None, "detail": None}
        counted = {"version": 1, "files": 2, **rest}
        bad = [{"path": "month=5/b.parquet", "detail": "the file is missing"}]
        assert looking == {"stage": "looking", "bad": bad, **counted}
        assert ended == {"stage": "ended", "bad": [], **counted}

    def test_what_others_have_committed_is_looked_for(self, shared_api, flights):
        log_file(shared_api, flights, 1).write_text(json.dumps(add()) + "\n")
        last = shared_api.get(f"/tables/{flights}/verify/files").text.splitlines()[-1]
        assert (json.loads(last)["version"], json.loads(last)["files"]) == (1, 1)


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
        ("method", "call"),
        [("GET", "verify"), ("GET", "verify/files"), ("POST", "rebuild"), ("POST", "release")],
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

    def test_data_files_are_looked_for_where_that_is_asked(self, tidegate, shared_api, flights):
        place = log_file(shared_api, flights, 0).parent.parent / "month=5"
        place.mkdir()
        (place / "a.parquet").write_bytes(bytes(10))
        commit(shared_api, flights, add())
        sound = tidegate("verify", flights, "--files")
        assert (sound.exit_code, sound.stdout.splitlines()) == (
            0,
            [
                "2 versions compared: no difference",
                "1 files of version 1 looked for: none is missing",
            ],
        )
        (place / "a.parquet").write_bytes(bytes(9))
        damaged = tidegate("verify", flights, "--files")
        assert damaged.exit_code == 1
        assert damaged.stdout.splitlines()[1:] == [
            "DATA FILE          WHAT IS WRONG",
            "month=5/a.parquet  the file has 9 bytes, and the log says 10",
            "1 files of version 1 looked for: 1 missing or damaged",
        ]
        found = json.loads(tidegate("verify", flights, "--files", "--json").stdout)
        assert found["data_files"]["skipped"] == 0
        assert [each["path"] for each in found["data_files"]["bad"]] == ["month=5/a.parquet"]
        assert tidegate("verify", flights).exit_code == 0

    @pytest.mark.parametrize(
        ("last", "said"),
        [
            ([{"stage": "failed", "code": "index-unavailable", "detail": "away"}], "able: away"),
            ([], "broke off"),
        ],
    )
    def test_files_that_were_not_all_looked_for(self, tidegate, flights, monkeypatch, last, said):
        counted = {"version": 0, "files": 1, "deletion_vectors": 0, "skipped": 0}
        first = {"stage": "looking", "bad": [{"path": "a", "detail": "the file is missing"}]}
        answer = [{**counted, "bad": [], **each} for each in (first, *last)]
        monkeypatch.setattr(maintenance, "lines", lambda *_: iter(answer))
        found = tidegate("verify", flights, "--files")
        assert (found.exit_code, said in found.stderr) == (1, True)
        assert "a          the file is missing" in found.stdout
        assert "looked for" not in found.stdout
        found = tidegate("verify", flights, "--files", "--json")
        assert json.loads(found.stdout)["data_files"]["bad"] == first["bad"]

    @pytest.mark.parametrize("command", [["rebuild"], ["table", "release"]])
    def test_the_others_show_the_table(self, tidegate, shared_api, flights, command):
        commit(shared_api, flights, add())
        done = tidegate(*command, flights)
        assert done.exit_code == 0, done.stderr
        assert "version         1 (published 1)" in done.stdout
        shown = json.loads(tidegate(*command, flights, "--json").stdout)
        assert (shown.pop("lost", []), shown.pop("unknown_ids", None)) == ([], None)
        assert shown == shared_api.get(f"/tables/{flights}").json()
