"""`tidegate serve --workers N`: several processes behind one address, killed and stopped."""

import itertools
import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import httpx
import psycopg
import pytest

from tests.builders.flights import TABLE, add, proposal, table_body
from tests.servers.postgres import cloned
from tests.service.process.cli.command_line import (
    START_S,
    STOP_S,
    TIDEGATE,
    environment,
    invoke,
    serving,
    tidegate,
    url_in,
)
from tidegate_service.index.embedded.server import EmbeddedPostgres

_numbers = itertools.count()
WORKERS = 2
SERVING = [str(number) for number in range(1, WORKERS + 1)]


@dataclass(slots=True)
class Service:
    parent: int
    url: str
    log: Path

    @property
    def api(self) -> str:
        return f"{self.url}/api/v1"

    def processes(self) -> dict[str, int]:
        """The pid of every worker by its name, from how they are forked: one after the other."""
        forking = max(children(self.parent), key=lambda pid: len(children(pid)))
        found = sorted(pid for pid in children(forking) if "forkserver" in command(pid))
        return dict(zip([*SERVING, "publisher"], found, strict=True))

    def metric(self, name: str) -> dict[str, float]:
        """A metric of each worker that answers."""
        text = httpx.get(f"{self.url}/metrics").text
        found = re.findall(rf'^{name}{{[^}}]*worker="(\w+)"}} (\S+)$', text, re.MULTILINE)
        return {worker: float(value) for worker, value in found}

    def head(self, table: str) -> dict[str, int]:
        while True:
            # Whoever had the connection may be killed.
            with suppress(httpx.TransportError):
                return httpx.get(f"{self.api}/tables/{table}").raise_for_status().json()


@contextmanager
def serving_alone(folder: Path, out: BinaryIO) -> Iterator[subprocess.Popen[bytes]]:
    """A service of two workers in a group of processes of its own, once it is up."""
    arguments = ["serve", "--port", "0", "--data-dir", str(folder / "data"), "--workers", "2"]
    with subprocess.Popen(
        [TIDEGATE, *arguments],
        stdout=subprocess.PIPE,
        stderr=out,
        env=environment(),
        start_new_session=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert b"is ready" in process.stdout.readline()
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def children(pid: int) -> list[int]:
    try:
        return [
            int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        ]
    except FileNotFoundError:
        return []


def command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")


def alive(pid: int) -> bool:
    try:
        # A zombie is dead; its parent has not looked yet.
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def until(true: Callable[[], bool], *, within_s: float = START_S) -> None:
    give_up = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < give_up


@contextmanager
def workers(database_url: str, folder: Path, *more: object) -> Iterator[Service]:
    log = folder / "log"
    arguments = ("--workers", WORKERS, "--database-url", database_url, "--data-dir", folder)
    with serving(*arguments, *more, log=log) as (process, printed):
        yield Service(process.pid, url_in(printed), log)
    assert process.returncode == 0


@pytest.fixture(scope="module")
def service(postgres_server, migrated_template, tmp_path_factory):
    with (
        cloned(postgres_server.url, migrated_template) as url,
        workers(url, tmp_path_factory.mktemp("workers")) as made,
    ):
        yield made


def create(service: Service, *, catalog_managed: bool) -> str:
    """The name of a new table."""
    name = f"main.workers.t{next(_numbers)}"
    body = table_body(name, catalog_managed=catalog_managed)
    httpx.post(f"{service.api}/tables", json=body).raise_for_status()
    return name


def is_published(service: Service, table: str) -> bool:
    head = service.head(table)
    return head["published_version"] == head["latest_version"]


def commit(service: Service, table: str, body: dict[str, object]) -> httpx.Response:
    """Asked until it is answered, with the same id, as the client does."""
    while True:
        try:
            answer = httpx.post(f"{service.api}/tables/{table}/commits", json=body, timeout=40)
        except httpx.TransportError:
            continue
        if answer.status_code != 503:
            return answer


class TestServing:
    def test_all_of_them_serve_and_one_publishes(self, service):
        assert httpx.get(f"{service.url}/readyz").json()["status"] == "ready"
        table = create(service, catalog_managed=True)

        def served() -> set[str]:
            httpx.get(f"{service.api}/tables")
            asked = r"tidegate_request_duration_seconds_count"
            return set(service.metric(asked))

        until(lambda: served() == set(SERVING))
        assert commit(service, table, proposal(add())).status_code == 201
        until(lambda: service.head(table)["published_version"] == 1)
        # The publisher counts a version once it is marked.
        counts = {"1": 0, "2": 0, "publisher": 2}
        until(lambda: service.metric("tidegate_published_versions_total") == counts)
        # What is asked of the index, those that serve say.
        assert set(service.metric("tidegate_unpublished_versions")) == set(SERVING)

    def test_each_of_them_comes_to_use_a_place_that_failed_at_the_start(
        self, database_url, tmp_path
    ):
        lake = tmp_path / "lake"
        in_the_way = lake / ".tidegate-probe" / "put-if-absent"
        in_the_way.mkdir(parents=True)
        with workers(database_url, tmp_path, "--allowed-locations", lake.as_uri()) as service:
            body = table_body(catalog_managed=True, location=f"{lake.as_uri()}/t")
            made = httpx.post(f"{service.api}/tables", json=body)
            assert (made.status_code, made.json()["code"]) == (503, "storage-unavailable")
            in_the_way.rmdir()

            def is_made() -> bool:
                return httpx.post(f"{service.api}/tables", json=body).status_code == 201

            until(is_made)
            assert commit(service, TABLE, proposal(add())).status_code == 201
            until(lambda: service.head(TABLE)["published_version"] == 1)


class TestTroubles:
    def test_killing_them_under_load_loses_nothing(self, service):
        tables = [create(service, catalog_managed=managed) for managed in (False, True)]
        enough = threading.Event()

        def heads() -> list[int]:
            return [service.head(table)["latest_version"] for table in tables]

        def go_on(before: list[int]) -> bool:
            return all(now > then + 5 for now, then in zip(heads(), before, strict=True))

        def write(writer: int) -> list[str]:
            table = tables[writer % 2]
            landed: list[str] = []
            while not enough.is_set():
                name = f"{writer}-{len(landed)}"
                body = proposal(add(f"month=5/{name}.parquet"), transaction_id=name)
                answer = commit(service, table, body)
                assert answer.status_code in (200, 201), answer.text
                landed.append(name)
            return landed

        with ThreadPoolExecutor() as pool:
            writing = [pool.submit(write, writer) for writer in range(4)]
            try:
                for killed in service.processes().values():
                    before = heads()
                    os.kill(killed, signal.SIGKILL)
                    until(lambda killed=killed: not alive(killed))
                    until(lambda before=before: go_on(before))
            finally:
                enough.set()
            landed = [future.result() for future in writing]
        for number, table in enumerate(tables):
            of_table = landed[number] + landed[number + 2]
            url = f"{service.api}/tables/{table}/commits"
            history = httpx.get(url, params={"limit": 1000}).json()["commits"]
            ids = [commit["transaction_id"] for commit in history]
            # Each once, and nothing but them and the first version.
            assert sorted(ids[:-1]) == sorted(of_table)
            assert len(of_table) == service.head(table)["latest_version"]

        # All are back.
        everyone = {*SERVING, "publisher"}
        until(lambda: set(service.metric("process_start_time_seconds")) == everyone)
        until(lambda: all(is_published(service, table) for table in tables))
        told = [json.loads(line) for line in service.log.read_text().splitlines()]
        ended = "a worker has ended and is started again"
        again = [(line["worker"], line["exit_code"]) for line in told if line["event"] == ended]
        assert again == [(name, -signal.SIGKILL) for name in (*SERVING, "publisher")]

    def test_without_the_parent_they_end(self, database_url, tmp_path):
        with serving(
            "--workers", WORKERS, "--database-url", database_url, "--data-dir", tmp_path
        ) as (process, printed):
            service = Service(process.pid, url_in(printed), tmp_path)
            pids = service.processes().values()
            process.kill()
            until(lambda: not any(map(alive, pids)), within_s=STOP_S)

    def test_a_signal_ends_them_all_in_time(self, tmp_path):
        """With an embedded database, which ends after them."""
        with serving("--workers", WORKERS, "--data-dir", tmp_path) as (process, printed):
            service = Service(process.pid, url_in(printed), tmp_path)
            httpx.post(f"{service.api}/tables", json=table_body()).raise_for_status()
            pids = service.processes().values()
            process.send_signal(signal.SIGTERM)
            assert process.wait(STOP_S) == 0
            assert not any(map(alive, pids))
        # The folder is free for the next one, which has what was written.
        with EmbeddedPostgres(tmp_path) as postgres, psycopg.connect(postgres.url) as connection:
            assert connection.execute("SELECT name FROM tables").fetchall() == [(TABLE,)]

    def test_a_signal_to_the_whole_group_is_waited_for_as_well(self, tmp_path):
        """As systemd sends it, and `timeout`: to the workers, too, and to what forks them."""
        log = tmp_path / "log"
        with log.open("wb") as out, serving_alone(tmp_path, out) as process:
            pids = Service(process.pid, "", log).processes().values()
            os.killpg(process.pid, signal.SIGTERM)
            assert process.wait(STOP_S) == 0
            assert not any(map(alive, pids))
        assert "a worker has ended" not in log.read_text()

    def test_one_that_hangs_is_killed_in_the_end(self, database_url, tmp_path):
        with workers(database_url, tmp_path) as service:
            pids = service.processes()
            os.kill(pids["1"], signal.SIGSTOP)
            os.kill(service.parent, signal.SIGTERM)
            until(lambda: not any(map(alive, pids.values())), within_s=STOP_S)
            until(lambda: not alive(service.parent), within_s=STOP_S)


class TestStarting:
    def test_what_none_of_them_can_start_with_is_said_in_a_line(self, database_url, tmp_path):
        done = tidegate(
            *("serve", "--workers", WORKERS, "--port", 0, "--data-dir", tmp_path),
            *("--database-url", database_url, "--warehouse", "file:///nowhere/at/all"),
        )
        assert done.returncode == 1
        assert done.stdout == ""
        (line,) = done.stderr.splitlines()
        assert line.startswith("tidegate: ")
        assert "existing folder" in line

    def test_more_than_the_embedded_database_has_connections_for(self, tmp_path):
        folder = tmp_path / "d"
        done = invoke("serve", "--workers", 6, "--port", 0, "--data-dir", folder)
        assert done.exit_code == 1
        (line,) = done.stderr.splitlines()
        assert "may use 200 connections, and the embedded Postgres has 190 for them" in line
        assert not folder.exists()

    def test_a_signal_while_they_start_leaves_nothing_behind(self, tmp_path):
        process = subprocess.Popen(
            [TIDEGATE, "serve", "--workers", "2", "--port", "0", "--data-dir", tmp_path],
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        until(lambda: any("forkserver" in command(pid) for pid in children(process.pid)))
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=START_S)
        assert process.returncode == 1
        assert errors.splitlines()[-1] == "tidegate: stopped while starting"
