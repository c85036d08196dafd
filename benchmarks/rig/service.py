"""The service as its users run it: `tidegate serve` as a process of its own."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx
from msgspec import Struct

from benchmarks.rig import processes

_READY = re.compile(r"is ready at (http://\S+)")
STOP_S = 20.0
SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": "id", "type": "long", "nullable": True, "metadata": {}},
        {"name": "value", "type": "double", "nullable": True, "metadata": {}},
        {"name": "p", "type": "string", "nullable": True, "metadata": {}},
    ],
}
"""Of the tables here, unless a bench has its own; the same as `rivals.SCHEMA`."""


class Table(Struct, frozen=True, kw_only=True):
    """`location` is a URL."""

    name: str
    location: str


class Service:
    """One that runs. `http` is for what is not measured: making tables, looking at heads."""

    def __init__(self, process: subprocess.Popen[str], url: str, database_url: str) -> None:
        self.process = process
        self.url = url
        self.api = f"{url}/api/v1"
        self.database_url = database_url
        self.http = httpx.Client(timeout=120.0)
        self._tables = 0

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def address(self) -> tuple[str, int]:
        parts = httpx.URL(self.url)
        assert parts.port is not None
        return parts.host, parts.port

    def create_table(
        self,
        *,
        catalog_managed: bool,
        partition_columns: tuple[str, ...] = (),
        location: str | None = None,
        schema: dict[str, Any] = SCHEMA,
        properties: Mapping[str, str] = MappingProxyType({}),
    ) -> Table:
        """A new table under a name of its own."""
        self._tables += 1
        body = {
            "name": f"main.bench.t{self._tables:05}",
            "schema": schema,
            "partition_columns": list(partition_columns),
            "catalog_managed": catalog_managed,
            "properties": dict(properties),
        }
        if location is not None:
            body["location"] = location
        made = succeeded(self.http.post(f"{self.api}/tables", json=body)).json()
        return Table(name=made["name"], location=made["location"])

    def head(self, table: Table) -> tuple[int, int]:
        """Its latest version and the latest one that is published."""
        found = succeeded(self.http.get(f"{self.api}/tables/{table.name}")).json()
        return found["latest_version"], found["published_version"]

    def commit(self, table: Table, body: dict[str, Any]) -> int:
        """Propose and return the version. For set-ups; measured commits go by `loading`."""
        url = f"{self.api}/tables/{table.name}/commits"
        version = succeeded(self.http.post(url, json=body)).json()["version"]
        assert isinstance(version, int)
        return version

    def cpu_seconds(self) -> float:
        return processes.cpu_seconds(self.pid)


def succeeded(answer: httpx.Response) -> httpx.Response:
    """The answer, if it is a 2xx; raises `RuntimeError` with what it says otherwise."""
    if not answer.is_success:
        raise RuntimeError(f"{answer.request.method} {answer.url}: {answer.text[:2000]}")
    return answer


@contextmanager
def serving(folder: Path, database_url: str, *flags: str) -> Iterator[Service]:
    """A service with the default settings but for the flags; its log is `folder/log`."""
    folder.mkdir(parents=True)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                Path(sys.executable).with_name("tidegate"),
                "serve",
                "--port=0",
                f"--data-dir={folder}",
                f"--database-url={database_url}",
                "--migrate",
                *flags,
            ],
            stdout=subprocess.PIPE,
            stderr=log,
            stdin=subprocess.DEVNULL,
            text=True,
        )
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        ready = _READY.search(first)
        if ready is None:
            said = (folder / "log").read_text(errors="replace")[-2000:]
            raise RuntimeError(f"the service did not start: {first}{said}")
        service = Service(process, ready.group(1), database_url)
        with service.http:
            yield service
    finally:
        _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    assert process.stdout is not None
    process.stdout.close()
