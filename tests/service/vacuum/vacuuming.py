"""Tables with files that are live, removed, in nobody's snapshot, or no data at all."""

import os
import time
from dataclasses import replace
from pathlib import Path

from tests.builders.proposals import proposal
from tests.service.world import World
from tidegate_protocol.log.actions import Action
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.ports.outcomes import Committed
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.core.vacuum.begin import begin_vacuum
from tidegate_service.core.vacuum.request import VacuumRequest
from tidegate_service.core.vacuum.vacuum import Progress, Stage

NOW_MS = time.time_ns() // 1_000_000
AT_ONCE = VacuumRequest(retain_ms=0, allow_shorter=True)
"""Of what is older than the longest request."""
OLD_S = 30 * 24 * 3600


def folder_of(table: TableRecord) -> Path:
    return Path(table.location.removeprefix("file://"))


def plant(table: TableRecord, *paths: str, age_s: float = OLD_S) -> None:
    for path in paths:
        file = folder_of(table) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"12345")
        at = time.time() - age_s
        os.utime(file, (at, at))


def left(table: TableRecord) -> set[str]:
    """Data files in the folder; those of the log are not shown."""
    folder = folder_of(table)
    files = (each.relative_to(folder) for each in folder.rglob("*") if each.is_file())
    return {str(file) for file in files if file.parts[0] != "_delta_log"}


async def land(world: World, table: TableRecord, *actions: Action, **fields: object) -> TableRecord:
    head = await get_table(world.context, table.id)
    body = proposal(*actions, read_version=head.latest_version, **fields)
    assert isinstance(await propose(world.context, table.id, body), Committed)
    return await get_table(world.context, table.id)


async def vacuumed(
    world: World, table: TableRecord, request: VacuumRequest = AT_ONCE
) -> list[Progress]:
    vacuum = await begin_vacuum(world.context, table.id, request)
    return [now async for now in vacuum.progress()]


async def ended(world: World, table: TableRecord, request: VacuumRequest = AT_ONCE) -> Progress:
    """The last word of one that went well."""
    last = (await vacuumed(world, table, request))[-1]
    assert last.stage is Stage.ENDED, last.error
    return last


async def named(world: World, table: TableRecord, request: VacuumRequest = AT_ONCE) -> set[str]:
    """What a dry run would delete."""
    said = await vacuumed(world, table, replace(request, dry_run=True))
    assert said[-1].stage is Stage.ENDED, said[-1].error
    return {path for now in said for path in now.paths}
