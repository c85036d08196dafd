"""Registering what deltalake wrote, with its checkpoints and its log clean-up."""

import json
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from tests.service.tables.delta_logs import names
from tidegate_service.core.tables.register import RegisterTable, register_table

pytestmark = pytest.mark.anyio


class TestDeltalake:
    def write(self, folder: Path, versions: int, **configuration: str) -> deltalake.DeltaTable:
        for number in range(versions):
            deltalake.write_deltalake(
                folder,
                pa.table({"x": [number], "v": [f"v{number}"]}),
                mode="append",
                partition_by=["x"],
                configuration=configuration,
            )
        return deltalake.DeltaTable(folder)

    async def paths(self, world, table) -> list[str]:
        batches = world.context.index.files(table.id, table.latest_version)
        return sorted([add.path async for batch in batches for add in batch])

    async def test_its_checkpoints(self, world, tmp_path):
        folder = tmp_path / "lake" / "t"
        theirs = self.write(folder, 4)
        theirs.create_checkpoint()
        theirs = self.write(folder, 2)
        for version in range(3):
            (folder / "_delta_log" / f"{version:020d}.json").unlink()
        table, _ = await register_table(
            world.context, RegisterTable(name=next(names), location=folder.as_uri())
        )
        assert (table.first_version, table.latest_version) == (3, 5)
        paths = theirs.get_add_actions().column("path").to_pylist()
        assert await self.paths(world, table) == sorted(paths)

    async def test_after_its_log_clean_up(self, world, tmp_path):
        folder = tmp_path / "lake" / "t"
        settings = {"delta.logRetentionDuration": "interval 0 days"}
        theirs = self.write(folder, 5, **settings)
        theirs.delete("x = '2'")
        theirs.create_checkpoint()
        theirs.cleanup_metadata()
        table, _ = await register_table(
            world.context, RegisterTable(name=next(names), location=folder.as_uri())
        )
        assert table.latest_version == theirs.version()
        paths = theirs.get_add_actions().column("path").to_pylist()
        assert await self.paths(world, table) == sorted(paths)
        assert json.loads(table.metadata.schema_string) == json.loads(theirs.schema().to_json())
