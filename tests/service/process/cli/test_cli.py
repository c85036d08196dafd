"""The command `tidegate` as its users run it: what serves is a process of its own."""

import json
import re
import signal
import subprocess
import time

import httpx

from tests.builders.flights import TABLE, add, proposal, table_body
from tests.service.process.cli.command_line import (
    START_S,
    STOP_S,
    TIDEGATE,
    environment,
    invoke,
    serving,
    url_in,
)
from tidegate_service.app import application
from tidegate_service.index.embedded.server import EmbeddedPostgres
from tidegate_service.settings import Settings, flag_name


class TestServe:
    def test_with_nothing_but_a_folder_it_is_ready_and_keeps_what_it_was_told(self, tmp_path):
        for attempt in ("first", "second"):
            with serving("--data-dir", tmp_path) as (process, printed):
                url = url_in(printed)
                assert httpx.get(f"{url}/readyz").status_code == 200
                if attempt == "first":
                    httpx.post(f"{url}/api/v1/tables", json=table_body()).raise_for_status()
                    answer = httpx.post(
                        f"{url}/api/v1/tables/{TABLE}/commits", json=proposal(add())
                    )
                    assert answer.status_code == 201
                else:
                    head = httpx.get(f"{url}/api/v1/tables/{TABLE}").json()
                    assert head["latest_version"] == 1
            assert process.returncode == 0
        assert (tmp_path / "postgres").is_dir()
        assert (tmp_path / "warehouse" / "main" / "air" / "flights" / "_delta_log").is_dir()

    def test_it_prints_where_it_is_and_no_secret(self, database_url, tmp_path):
        secret = re.search(r":([^:@/]+)@", database_url)
        assert secret is not None
        with serving(
            "--data-dir", tmp_path, "--log-level", "debug", TIDEGATE_DATABASE_URL=database_url
        ) as (process, printed):
            assert re.search(r"^Tidegate \S+ is ready at http://127.0.0.1:\d+$", printed, re.M)
            assert f"{url_in(printed)}/docs" in printed
            assert "tidegate:***@" in printed
            httpx.get(f"{url_in(printed)}/api/v1/tables", headers={"X-Request-Id": "r-1"})
            process.send_signal(signal.SIGTERM)
            more, log = process.communicate(timeout=STOP_S)
        assert secret.group(1) not in printed + more + log
        events = [json.loads(line) for line in log.splitlines()]
        (event,) = (event for event in events if event.get("request_id") == "r-1")
        assert event["status"] == 200

    def test_an_interrupt_ends_it_in_time(self, database_url, tmp_path):
        """So does SIGTERM, which ends every other service here."""
        with serving("--database-url", database_url, "--data-dir", tmp_path) as (process, _):
            process.send_signal(signal.SIGINT)
            assert process.wait(STOP_S) == 0

    def test_a_signal_while_it_starts_leaves_nothing_behind(self, tmp_path):
        process = subprocess.Popen(
            [TIDEGATE, "serve", "--port", "0", "--data-dir", tmp_path],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        give_up = time.monotonic() + START_S
        while not (tmp_path / "postgres").exists():
            assert time.monotonic() < give_up
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=START_S)
        assert process.returncode == 1
        assert errors.splitlines()[-1] == "tidegate: stopped while starting"
        # The folder is free for the next one.
        with EmbeddedPostgres(tmp_path) as postgres:
            assert postgres.running

    def test_what_cannot_be_is_said_in_a_line(self, tmp_path):
        nowhere = "postgresql://u:hidden@127.0.0.1:1/d"
        done = invoke("serve", "--data-dir", tmp_path, "--port", 0, "--database-url", nowhere)
        assert done.exit_code == 1
        assert done.stdout == ""
        (line,) = done.stderr.splitlines()
        assert line.startswith("tidegate: ")
        assert "the index database does not answer" in line
        assert "hidden" not in line

    def test_a_port_in_use_is_said_before_anything_is_started(self, shared_server, tmp_path):
        port = shared_server.rpartition(":")[2]
        done = invoke("serve", "--data-dir", tmp_path, "--port", port)
        assert done.exit_code == 1
        assert "cannot listen on 127.0.0.1" in done.stderr
        assert not (tmp_path / "postgres").exists()

    def test_a_misspelt_variable_is_warned_of(self):
        done = invoke("serve", "--host", "0.0.0.0", TIDEGATE_PROT="1")
        assert "warning: TIDEGATE_PROT is set but is not a setting" in done.stderr

    def test_every_setting_has_its_flag(self):
        shown = invoke("serve", "--help", COLUMNS="300").output
        for field in Settings.model_fields:
            assert flag_name(field) in shown


class TestMigrate:
    def test_a_foreign_database_is_only_migrated_when_told_to(self, empty_database_url, tmp_path):
        where = ("--data-dir", tmp_path, "--database-url", empty_database_url)
        refused = invoke("serve", "--port", 0, *where)
        assert refused.exit_code == 1
        assert "run `tidegate migrate`, or serve with --migrate" in refused.stderr

        for _ in range(2):
            done = invoke("migrate", *where[2:])
            assert done.exit_code == 0, done.stderr
            assert "the schema is at revision" in done.stdout

    def test_serve_migrates_when_told_to(self, empty_database_url, tmp_path):
        with serving("--migrate", "--data-dir", tmp_path, "--database-url", empty_database_url) as (
            _,
            printed,
        ):
            assert httpx.get(f"{url_in(printed)}/readyz").status_code == 200

    def test_an_embedded_one_that_no_service_has_made(self, tmp_path):
        done = invoke("migrate", "--data-dir", tmp_path / "elsewhere")
        assert done.exit_code == 1
        assert "no service has kept its index in" in done.stderr
        assert not (tmp_path / "elsewhere").exists()


class TestOpenapi:
    def test_it_prints_the_document(self):
        done = invoke("openapi")
        assert done.exit_code == 0
        assert json.loads(done.stdout) == json.loads(json.dumps(application().openapi()))


class TestCommands:
    def test_the_version(self):
        assert invoke("--version").stdout == f"tidegate {application().version}\n"
