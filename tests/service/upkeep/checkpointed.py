"""Tables with checkpoints, and what readers make of them."""

import json
import shutil
from collections.abc import Iterable
from pathlib import Path

import deltalake

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.world import World
from tidegate_protocol.log.actions import Add
from tidegate_service.core.checkpoints.checkpoint import (
    CheckpointLayout,
    CheckpointWritten,
    write_checkpoint,
)
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.tables.lookup import get_table

SMALL = CheckpointLayout(part_files=3, sidecar_files=3)
V2 = {"delta.checkpointPolicy": "v2", "delta.feature.v2Checkpoint": "supported"}


async def of_twelve_files(world: World) -> TableRecord:
    """Twelve files in four partitions, and a first V2 checkpoint, three files a sidecar."""
    made = await world.create(properties=V2)
    files = [add(f"x={x}/{n}.parquet", str(x)) for x in range(4) for n in range(3)]
    await propose(world.context, made.name, proposal(*files))
    first = await checkpointed(world, made, layout=SMALL)
    assert (first.files, first.files_written) == (5, 5)
    return made


async def checkpointed(
    world: World, table: TableRecord, version: int | None = None, **options: object
) -> CheckpointWritten:
    """What is written of the table as it is now."""
    context = world.context
    now = await get_table(context, table.id)
    return await write_checkpoint(context.index, context.storage, now, version, **options)


async def live(world: World, table: TableRecord, version: int) -> set[tuple[str, str | None]]:
    """Path and deletion vector of each live file, as the index knows them."""
    found: list[Add] = []
    async for batch in world.context.index.files(table.id, version):
        found.extend(batch)
    return {
        (add.path, add.deletion_vector.unique_id if add.deletion_vector else None) for add in found
    }


def folder_of(table: TableRecord) -> Path:
    return Path(table.location.removeprefix("file://"))


def forget_commits(table: TableRecord, through: int) -> None:
    """Delete the commits that the checkpoint of this version stands for, as a clean-up does: all
    but its own, which says when the version was."""
    for commit in (folder_of(table) / "_delta_log").glob("*.json"):
        if commit.stem.isdigit() and int(commit.stem) < through:
            commit.unlink()


def by_deltalake(folder: Path, tmp_path: Path) -> deltalake.DeltaTable:
    """The table as another engine reads it, from a copy, so that it knows nothing from before."""
    copy = tmp_path / f"copy-{len(list(tmp_path.glob('copy-*')))}"
    shutil.copytree(folder, copy)
    return deltalake.DeltaTable(copy)


def paths_of(table: deltalake.DeltaTable) -> set[str]:
    return set(table.get_add_actions()["path"].to_pylist())


async def check_readers(world: World, table: TableRecord, tmp_path: Path, version: int) -> None:
    """That another engine has the version as its latest, with the files of the index."""
    theirs = by_deltalake(folder_of(table), tmp_path)
    assert theirs.version() == version
    assert paths_of(theirs) == {path for path, _ in await live(world, table, version)}


def pointer(table: TableRecord) -> dict[str, object]:
    content = (folder_of(table) / "_delta_log" / "_last_checkpoint").read_bytes()
    found: dict[str, object] = json.loads(content)
    return found


def names(table: TableRecord, pattern: str = "*checkpoint*") -> list[str]:
    found: Iterable[Path] = (folder_of(table) / "_delta_log").glob(pattern)
    return sorted(path.name for path in found)
