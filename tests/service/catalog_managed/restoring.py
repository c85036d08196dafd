"""A database and its backups: copies of it as it was, as a restore or a lagging standby leaves."""

import asyncio
import itertools
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import psycopg
from sqlalchemy.ext.asyncio import AsyncEngine

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.repository import ROOT
from tests.servers.postgres import url_of
from tests.service.faults import FaultyStorage
from tests.service.world import World, make_world
from tidegate_service.core.catalog_managed.publish import publish_table
from tidegate_service.core.commit.group import run_group
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.commit.queue.commit_queue import CommitQueue
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.postgres.engine import create_engine
from tidegate_service.storage import ObjectStorage

_numbers = itertools.count(1)


@dataclass
class Backups:
    """`server_url` is of the server that they all are on."""

    server_url: str
    warehouse: str
    storage: FaultyStorage
    engines: list[AsyncEngine] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def instance(self, url: str) -> World:
        """An instance that has just started on the database."""
        return make_world(self._index(url), self.storage, self.warehouse)

    def taken_over(self, world: World, url: str) -> World:
        """The same instance, whose connections are to this database from now on."""
        context = replace(
            world.context, index=self._index(url), commit=CommitQueue(run_group).commit
        )
        return World(context)

    async def copy(self, url: str) -> str:
        """The URL of a copy of the database as it is now."""
        for engine in self.engines:
            # Postgres copies only what nobody is connected to.
            await engine.dispose()
        name = f"restored_{next(_numbers)}"
        await asyncio.to_thread(self._execute, f"CREATE DATABASE {name} TEMPLATE {_name_of(url)}")
        self.names.append(name)
        return url_of(self.server_url, name)

    def _index(self, url: str) -> PostgresIndex:
        engine = create_engine(url)
        self.engines.append(engine)
        return PostgresIndex(engine)

    def _execute(self, statement: str) -> None:
        with psycopg.connect(self.server_url, autocommit=True) as connection:
            connection.execute(statement)

    async def close(self) -> None:
        for engine in self.engines:
            await engine.dispose()
        for name in self.names:
            await asyncio.to_thread(self._execute, f"DROP DATABASE {name} WITH (FORCE)")


@asynccontextmanager
async def backups(server_url: str, folder: Path) -> AsyncIterator[Backups]:
    warehouse = folder.as_uri()
    made = Backups(server_url, warehouse, FaultyStorage(ObjectStorage(warehouse=warehouse)))
    try:
        yield made
    finally:
        await made.close()


def _name_of(url: str) -> str:
    return url.partition("?")[0].rpartition("/")[2]


async def commit(world: World, table: TableRecord, *names: str) -> None:
    """A commit of a file for each name, under it as its id."""
    for name in names:
        await propose(world.context, table.id, body(name))


def body(name: str) -> object:
    return proposal(add(f"x=1/{name}"), transaction_id=name)


async def publish(world: World, table: TableRecord) -> None:
    head = await get_table(world.context, table.id)
    await publish_table(world.context.index, world.context.storage, head)


def quiet(url: str, table: TableRecord) -> None:
    """The table's head is a minute old."""
    with psycopg.connect(url) as connection:
        connection.execute(
            "UPDATE tables SET latest_timestamp = latest_timestamp - 60000 WHERE id = %s",
            [table.id],
        )


def given_up(table: TableRecord) -> list[str]:
    """The statements of the runbook for a table that cannot be rebuilt, of this one."""
    text = (ROOT / "docs" / "maintenance.md").read_text()
    runbook = text.partition("### A table that cannot be rebuilt")[2].partition("\n### ")[0]
    statements = re.findall(r"```sql\n(.*?)```", runbook, re.S)
    assert [one.split()[0] for one in statements] == ["SELECT", "UPDATE"]
    return [one.replace("main.air.flights", table.name) for one in statements]
