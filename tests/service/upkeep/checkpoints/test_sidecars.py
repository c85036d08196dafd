"""Sidecars go when they are old and nobody names them."""

import os
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from tests.service.upkeep.aged import (
    LogOf,
    age,
    commit,
    let_it_be_tomorrow,
    rows_of,
)
from tests.service.upkeep.conftest import Caring
from tests.service.world import World
from tidegate_service.background.caretaker import Caretaker
from tidegate_service.core.limits import UpkeepLimits
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.records import TableRecord

pytestmark = pytest.mark.anyio


class TestSidecars:
    async def table(
        self, world: World, index: Index, engine: AsyncEngine
    ) -> tuple[TableRecord, LogOf, list[Path]]:
        """With V2 checkpoints of 3 and 5, each with a sidecar, and one that nobody names."""
        table = await world.create(properties={"delta.checkpointPolicy": "v2"})
        await commit(world, table, 6)
        log = LogOf(world, table)
        for version in (3, 5):
            log.v2(version, await rows_of(index, table, version), form="json", sidecars=1)
        (log.folder / "_sidecars" / "3a0d65cd-4056-49b8-937b-95f9e3ee90e5.parquet").touch()
        await age(world, engine, table, {range(7): 40})
        return table, log, sorted((log.folder / "_sidecars").iterdir())

    def old(self, files: list[Path]) -> None:
        for file in files:
            os.utime(file, (1, 1))

    async def test_those_that_nobody_names_go_when_they_are_old(
        self, world: World, index: Index, engine: AsyncEngine, caretaker: Caretaker
    ):
        _, log, files = await self.table(world, index, engine)
        await caretaker.round()
        assert (log.versions, log.checkpoints) == ([5, 6], [5])
        assert sorted((log.folder / "_sidecars").iterdir()) == files
        foreign = log.folder / "_sidecars" / "x (1).parquet"
        foreign.touch()
        self.old([*files, foreign])
        await let_it_be_tomorrow(engine)
        await caretaker.round()
        left, _ = sorted((log.folder / "_sidecars").iterdir(), key=lambda file: file == foreign)
        assert foreign.exists()
        assert left.name in next(log.folder.glob("*.checkpoint.*")).read_text()

    async def test_a_checkpoint_with_a_classic_name_may_name_some(
        self, world: World, index: Index, engine: AsyncEngine, caretaker: Caretaker
    ):
        table, log, sidecars = await self.table(world, index, engine)
        self.old(sidecars)
        await commit(world, table, 1)
        log.v2(7, await rows_of(index, table, 7), form="parquet", sidecars=1)
        (main,) = log.folder.glob(f"{7:020d}.checkpoint.*")
        main.rename(log.folder / f"{7:020d}.checkpoint.parquet")
        (named,) = set((log.folder / "_sidecars").iterdir()) - set(sidecars)
        self.old([named])
        await caretaker.round()
        assert log.versions == [5, 6, 7]
        assert named.exists()
        assert len(list((log.folder / "_sidecars").iterdir())) == 2

    @pytest.mark.parametrize("limits", [UpkeepLimits(sidecars=0), UpkeepLimits(sidecars_s=0)])
    async def test_none_goes_where_reading_what_is_named_takes_too_much(
        self,
        *,
        world: World,
        index: Index,
        engine: AsyncEngine,
        caring: Caring,
        limits: UpkeepLimits,
    ):
        _, log, files = await self.table(world, index, engine)
        self.old(files)
        await caring(limits=limits).round()
        assert log.checkpoints == [5]
        assert sorted((log.folder / "_sidecars").iterdir()) == files

    async def test_none_goes_where_a_checkpoint_cannot_be_read(
        self, world: World, index: Index, engine: AsyncEngine, caretaker: Caretaker
    ):
        table, log, files = await self.table(world, index, engine)
        self.old(files)
        await commit(world, table, 1)
        log.path(7, "checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json").write_text("torn")
        await caretaker.round()
        assert log.versions == [5, 6, 7]
        assert sorted((log.folder / "_sidecars").iterdir()) == files
