"""What a run stands on: one Postgres, some instances, some tables; and what is left of it."""

import asyncio
import os
import signal
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import obstore
import psycopg
from obstore.store import LocalStore, ObjectStore, S3Store

from tests.chaos.judging.history import Final, Row
from tests.chaos.load import REQUEST_TIMEOUT_S, SCHEMA
from tests.servers.failover import Failover
from tests.service.instances import Instance, instances
from tests.service.serving import OF_NO_PAGE
from tidegate_service.index.embedded.server import EmbeddedPostgres
from tidegate_service.index.postgres import migrate
from tidegate_service.settings import Settings

CATCH_UP_S = 60.0
ROWS = """
    SELECT commits.version, commits.transaction_id, commits.timestamp, commits.content_sha256
    FROM commits JOIN tables ON tables.id = commits.table_id
    WHERE tables.name = %s ORDER BY commits.version
"""


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    location: str
    catalog_managed: bool


@dataclass(slots=True)
class Cluster:
    """`postgres` is the one that takes commits. `storage_options` are what reading the tables'
    storage takes, without any proxy."""

    postgres: EmbeddedPostgres
    folder: Path
    instances: list[Instance]
    http: httpx.AsyncClient
    storage_options: Mapping[str, str] = field(default_factory=dict)
    tables: list[Table] = field(default_factory=list)

    async def create(self, name: str, *, catalog_managed: bool) -> Table:
        body = {
            "name": name,
            "schema": SCHEMA,
            "partition_columns": ["p"],
            "catalog_managed": catalog_managed,
        }
        made = await self.http.post(f"{self.instances[0].api}/tables", json=body)
        table = Table(name, made.raise_for_status().json()["location"], catalog_managed)
        self.tables.append(table)
        return table

    async def kill(self, instance: Instance) -> None:
        """kill -9, and up again."""
        await asyncio.to_thread(instance.kill)
        await self.start(instance)

    async def start(self, instance: Instance) -> None:
        instance.start()
        await asyncio.to_thread(instance.ready)

    async def kill_postgres(self) -> None:
        """kill -9 of its first process, which ends them all, and recovery."""
        pid_file = self.folder / "postgres" / "data" / "postmaster.pid"
        os.kill(int(pid_file.read_text().split("\n", 1)[0]), signal.SIGKILL)
        while self.postgres.running:
            await asyncio.sleep(0.01)
        await asyncio.to_thread(self.postgres.start)

    async def finals(self) -> dict[str, Final]:
        """Every table, once its log has caught up with the service."""
        return {table.name: await self._final(table) for table in self.tables}

    async def _final(self, table: Table) -> Final:
        url = f"{self.instances[0].api}/tables/{table.name}"
        # Reads what was written past the service after its last commit.
        looking = {"operation": "WRITE", "actions": []}
        (await self.http.post(f"{url}/conflict-check", json=looking)).raise_for_status()
        async with asyncio.timeout(CATCH_UP_S):
            while True:
                answer = await self.http.get(url)
                head = answer.json()
                if head["latest_version"] == head["published_version"]:
                    break
                await asyncio.sleep(0.05)
        with psycopg.connect(self.postgres.url) as connection:
            found = connection.execute(ROWS, [table.name]).fetchall()
        rows = tuple(
            Row(version=version, id=identity, timestamp=timestamp, sha256=sha256)
            for version, identity, timestamp, sha256 in found
        )
        assert rows[-1].version == head["latest_version"], "the head is not the last version"
        log = await self._log(table)
        return Final(table=table.name, catalog_managed=table.catalog_managed, log=log, rows=rows)

    async def _log(self, table: Table) -> dict[int, bytes]:
        store, prefix = self._store(table.location)
        log = {}
        for entry in obstore.list(store, prefix).collect():
            name = entry["path"].rpartition("/")[2]
            if name.endswith(".json") and len(name) == 25:
                found = await obstore.get_async(store, entry["path"])
                log[int(name[:20])] = (await found.bytes_async()).to_bytes()
        return log

    def _store(self, location: str) -> tuple[ObjectStore, str]:
        parts = urlsplit(location)
        if parts.scheme == "file":
            return LocalStore(f"{parts.path}/_delta_log"), ""
        store = S3Store(parts.netloc, config=dict(self.storage_options))
        return store, f"{parts.path.lstrip('/')}/_delta_log"


@asynccontextmanager
async def cluster(
    count: int,
    *,
    warehouse: str | None = None,
    service_options: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
    folder: Path | None = None,
    servers: Failover | None = None,
) -> AsyncIterator[Cluster]:
    """Instances on a Postgres of their own, or on these two, with local tables unless told
    otherwise. Postgres is in `folder`/postgres and the tables in `folder`/data, by default in a
    folder of their own."""
    async with AsyncExitStack() as stack:
        folder = folder or Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="tidegate-", dir="/tmp"))
        )
        if servers is None:
            postgres = stack.enter_context(EmbeddedPostgres(folder))
        else:
            postgres = servers.primary
        await asyncio.to_thread(migrate.upgrade, postgres.url)
        settings = Settings(
            database_url=postgres.url if servers is None else servers.url,
            data_dir=folder / "data",
            port=0,
            log_level="error",
            publish_interval_seconds=0.2,
            database_pool_size=8,
            warehouse=warehouse,
            storage_options=dict(service_options or {}),
        )
        up = stack.enter_context(instances(*[settings] * count))
        http = await stack.enter_async_context(
            httpx.AsyncClient(
                timeout=REQUEST_TIMEOUT_S,
                limits=httpx.Limits(max_keepalive_connections=64),
                headers=OF_NO_PAGE,
            )
        )
        yield Cluster(
            postgres=postgres,
            folder=folder,
            instances=up,
            http=http,
            storage_options=storage_options or {},
        )


def urls(made: Sequence[Instance]) -> list[str]:
    return [instance.api for instance in made]
