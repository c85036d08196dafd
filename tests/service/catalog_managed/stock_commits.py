"""Commits of stock clients beside those of ours, and a log that the table has since a backup."""

import json
import uuid
from dataclasses import dataclass

from tests.service.catalog_managed.restoring import Backups, commit, publish
from tests.service.world import World
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.unity_catalog.load import load_table
from tidegate_service.core.unity_catalog.requests import AddCommit, Update
from tidegate_service.core.unity_catalog.update import update_table

WITHOUT_ID = "no-id"
"""The name of a commit whose commitInfo has no txnId."""


def staged(world: World, table: TableRecord, version: int, name: str, *, at: int) -> AddCommit:
    """What a client says of a commit that it has staged: an append of a file of this name."""
    info = {
        "timestamp": at,
        "inCommitTimestamp": at,
        "operation": "WRITE",
        "operationParameters": {},
        "engineInfo": "a stock engine",
        **({} if name == WITHOUT_ID else {"txnId": name}),
    }
    add = {
        "path": f"x=1/{name}",
        "partitionValues": {"x": "1"},
        "size": 10,
        "modificationTime": at,
        "dataChange": True,
    }
    lines = ({"commitInfo": info}, {"add": add})
    content = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    return stage(world, table, version, content, at=at)


def stage(world: World, table: TableRecord, version: int, content: bytes, *, at: int) -> AddCommit:
    folder = world.log_folder(table) / "_staged_commits"
    folder.mkdir(exist_ok=True)
    name = f"{version:020d}.{uuid.uuid4()}.json"
    (folder / name).write_bytes(content)
    return AddCommit(version=version, timestamp=at, file_name=name, file_size=len(content))


async def stock_commit(world: World, table: TableRecord, name: str) -> AddCommit:
    """Returns what was said of the commit; it has landed."""
    head = await load_table(world.context, table.id)
    said = staged(world, table, head.latest_version + 1, name, at=head.latest_timestamp + 1)
    landed = await again(world, table, said)
    assert landed.latest_version == said.version
    return said


async def again(world: World, table: TableRecord, said: AddCommit) -> TableRecord:
    return await update_table(world.context, table.id, Update(commit=said))


@dataclass
class StockSetBack:
    """A table of catalog `main`: version 1 gave it the id for stock clients, and version 2 is `a`.
    `then` is an instance of a backup of that state; `now` is one of the database that has all
    versions. `said` is what stock clients said of theirs, by name. `old_url` is the backup's."""

    now: World
    then: World
    table: TableRecord
    said: dict[str, AddCommit]
    old_url: str


async def stock_set_back(made: Backups, url: str, *names: str, **properties: str) -> StockSetBack:
    """Names that begin with "stock", and `WITHOUT_ID`, are commits of stock clients."""
    now = made.instance(url)
    table = await now.create(catalog_managed=True, properties=properties)
    await load_table(now.context, table.id)
    await commit(now, table, "a")
    await publish(now, table)
    old = await made.copy(url)
    said = {}
    for name in names:
        if name.startswith("stock") or name == WITHOUT_ID:
            said[name] = await stock_commit(now, table, name)
        else:
            await commit(now, table, name)
    await publish(now, table)
    return StockSetBack(now, made.instance(old), table, said, old)
