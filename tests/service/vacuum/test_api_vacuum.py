"""VACUUM over HTTP, by the command line, and by the client."""

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import timedelta
from pathlib import Path
from threading import Event

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidegate
from tests.builders.flights import add, proposal
from tests.service.process.cli.command_line import invoke

OLD_S = 30 * 24 * 3600
AT_ONCE = {"retain_ms": 0, "allow_shorter": True}


@pytest.fixture
def folder(shared_api, flights):
    """Of a table with a live file, and two that nobody names."""
    head = shared_api.get(f"/tables/{flights}").json()
    folder = Path(head["location"].removeprefix("file://"))
    shared_api.post(f"/tables/{flights}/commits", json=proposal(add("live"))).raise_for_status()
    for path in ("live", "orphan", "month=1/\u202eorphan"):
        file = folder / path
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"12345")
        at = time.time() - OLD_S
        os.utime(file, (at, at))
    return folder


def lines(answer):
    assert answer.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in answer.text.splitlines()]


class TestHttp:
    def test_the_answer_is_its_progress(self, shared_api, flights, folder):
        head, *progress = lines(shared_api.post(f"/tables/{flights}/vacuum", json=AT_ONCE))
        assert (head["table"], head["version"], head["retain_ms"]) == (flights, 1, 0)
        assert head["dry_run"] is False
        # Of the other tables of the shared service.
        progress[-1].pop("logs", None)
        assert progress[-1] == {
            "stage": "ended",
            "listed": 3,
            "found": 2,
            "found_bytes": 10,
            "deleted": 2,
            "version": 3,
        }
        assert (folder / "live").exists()
        assert not (folder / "orphan").exists()

    def test_a_dry_run_names_files(self, shared_api, flights, folder):
        answer = shared_api.post(f"/tables/{flights}/vacuum", json={"dry_run": True})
        paths = {path for line in lines(answer)[1:] for path in line.get("paths", ())}
        assert paths == {"orphan", "month=1/\u202eorphan"}
        assert (folder / "orphan").exists()

    def test_a_retention_that_is_too_short_is_a_problem(self, shared_api, flights):
        answer = shared_api.post(f"/tables/{flights}/vacuum", json={"retain_ms": 1})
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")
        assert "allow_shorter" in answer.json()["hint"]

    def test_one_that_fails_says_why(self, shared_api, flights, folder):
        (folder / "_delta_log" / f"{2:020d}.json").write_text("{")
        answer = shared_api.post(f"/tables/{flights}/vacuum", json=AT_ONCE)
        assert answer.status_code == 503
        assert (folder / "orphan").exists()
        # No other table is vacuumed while the log of one is not read.
        shared_api.delete(f"/tables/{flights}").raise_for_status()


class TestInventory:
    def send(self, api, table, *entries, **asked):
        body = "\n".join(json.dumps(line) for line in (asked, *entries))
        headers = {"content-type": "application/x-ndjson"}
        return api.post(f"/tables/{table}/vacuum", content=body, headers=headers)

    def test_it_stands_for_the_listing(self, shared_api, flights, folder):
        def entry(path, *, age_s=OLD_S, **fields):
            at = int((time.time() - age_s) * 1000)
            return {"path": path, "length": 5, "modificationTime": at, **fields}

        said = lines(
            self.send(
                shared_api,
                flights,
                entry(f"file://{folder}/orphan"),
                entry("live"),
                entry("young", age_s=1),
                entry("month=1", isDir=True),
                entry("_delta_log/00000000000000000000.json"),
                entry("gone"),
                entry("../elsewhere"),
                entry("file:///etc/passwd"),
                **AT_ONCE,
            )
        )
        assert (said[-1]["stage"], said[-1]["listed"], said[-1]["deleted"]) == ("ended", 4, 2)
        assert not (folder / "orphan").exists()
        assert (folder / "month=1" / "\u202eorphan").exists()
        assert (folder / "live").exists()

    @pytest.mark.parametrize(
        "entry",
        [
            {"path": "x"},
            {"path": "", "length": 1, "modificationTime": 1},
            {"path": "a\0b", "length": 1, "modificationTime": 1},
            {"path": "x", "length": -1, "modificationTime": 1},
            {"path": "x", "length": 2**63, "modificationTime": 1},
            {"path": "x" * 4_097, "length": 1, "modificationTime": 1},
            [],
        ],
    )
    def test_a_line_that_is_none_is_refused(self, shared_api, flights, entry):
        answer = self.send(shared_api, flights, entry, dry_run=True)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")
        assert "line 2" in answer.json()["detail"]

    @pytest.mark.slow
    def test_a_body_is_read_in_the_turn_of_its_vacuum(self, shared_api, flights, folder):
        begun, rest = Event(), Event()

        def body():
            yield b'{"dry_run": true}\n'
            begun.set()
            rest.wait(20)
            yield b'{"path": "orphan", "length": 5, "modificationTime": 1}'

        def vacuum(content):
            headers = {"content-type": "application/x-ndjson"}
            return shared_api.post(f"/tables/{flights}/vacuum", content=content, headers=headers)

        with ThreadPoolExecutor(2) as threads:
            first = threads.submit(vacuum, body())
            assert begun.wait(20)
            time.sleep(0.5)
            second = threads.submit(vacuum, b'{"dry_run": true}')
            assert not wait([second], timeout=1).done
            rest.set()
            assert lines(first.result())[-1]["found"] == 1
            assert lines(second.result())[-1]["stage"] == "ended"

    def test_so_is_a_body_of_nothing(self, shared_api, flights):
        headers = {"content-type": "application/x-ndjson"}
        answer = shared_api.post(f"/tables/{flights}/vacuum", content="", headers=headers)
        assert answer.status_code == 422

    def test_the_command_line_reads_it_from_parquet(self, shared_server, flights, folder, tmp_path):
        rows = {
            "path": ["orphan", "live"],
            "length": [5, 5],
            "isDir": [False, False],
            "modificationTime": [1, 1],
        }
        file = tmp_path / "inventory.parquet"
        pq.write_table(pa.table(rows), file)
        options = ("--dry-run", "--inventory", file, "--url", shared_server)
        done = invoke("vacuum", flights, *options)
        assert (done.exit_code, done.stdout) == (0, "orphan\n"), done.stderr
        pq.write_table(pa.table({"path": ["orphan"]}), file)
        assert "it has no column length" in invoke("vacuum", flights, *options).stderr
        file.write_bytes(b"none")
        failed = invoke("vacuum", flights, *options)
        assert failed.exit_code == 1
        assert "cannot be read" in failed.stderr


class TestCommandLine:
    def test_it_says_what_it_does(self, shared_server, flights, folder):
        dry = invoke("vacuum", flights, "--dry-run", "--url", shared_server)
        assert dry.exit_code == 0, dry.stderr
        assert sorted(dry.stdout.splitlines()) == ["month=1/\\u202eorphan", "orphan"]
        assert "2 files of 10 bytes would be deleted" in dry.stderr
        short = invoke("vacuum", flights, "--retain", "1h", "--url", shared_server)
        assert short.exit_code == 1
        assert "--allow-shorter" in short.stderr
        done = invoke(
            "vacuum", flights, "--retain", "1h", "--allow-shorter", "--url", shared_server
        )
        assert done.exit_code == 0, done.stderr
        assert "2 files of 10 bytes and 0 folders deleted, 3 looked at" in done.stdout
        assert not (folder / "orphan").exists()

    def test_its_answer_can_be_had_as_it_is(self, shared_server, flights, folder):
        done = invoke("vacuum", flights, "--dry-run", "--json", "--url", shared_server)
        said = [json.loads(line) for line in done.stdout.splitlines()]
        assert (said[0]["table"], said[-1]["stage"]) == (flights, "ended")

    @pytest.mark.parametrize("retain", ["7 days", "1.5h", "h", "-1h"])
    def test_a_time_that_is_none_is_refused(self, shared_server, flights, retain):
        done = invoke("vacuum", flights, f"--retain={retain}", "--url", shared_server)
        assert done.exit_code == 1
        assert "expected a time such as 168h" in done.stderr


class TestClient:
    def test_it_returns_what_became_of_it(self, shared_server, flights, folder):
        with tidegate.connect(shared_server) as lake:
            table = lake.table(flights)
            dry = table.vacuum(dry_run=True)
            assert set(dry.paths) == {"orphan", "month=1/\u202eorphan"}
            assert (dry.found, dry.deleted, dry.version) == (2, 0, None)
            with pytest.raises(tidegate.InvalidRequest, match="shorter than"):
                table.vacuum(retain=timedelta(hours=1))
            done = table.vacuum(retain=timedelta(hours=1), allow_shorter=True)
            assert (done.listed, done.deleted, done.version) == (3, 2, 3)
            assert table.version == 3
        assert not (folder / "orphan").exists()
