"""Whoever goes on from an old version notices that the index does not hold it any more."""

import logging
from dataclasses import replace

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.hooks.hooks import KIND, Noting, caretaker_of
from tests.service.upkeep.clean_up.long_past import CUT, VERSIONS, Past, cleaned_up
from tests.service.upkeep.conftest import Expiring
from tests.service.vacuum.vacuuming import plant
from tests.service.world import World
from tidegate_service.background.caretaker import Caretaker
from tidegate_service.core.checkpoints.v2_checkpoint import V2
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import IndexUnavailable, NotFound, Refused
from tidegate_service.core.ports.checkpoints import KnownCheckpoint, Sidecar
from tidegate_service.core.ports.index import Index
from tidegate_service.core.vacuum.begin import begin_vacuum
from tidegate_service.core.vacuum.request import VacuumRequest
from tidegate_service.core.vacuum.vacuum import Stage
from tidegate_service.index.upkeep.standing import PostgresUpkeep

pytestmark = pytest.mark.anyio


@pytest.fixture
async def past(
    world: World, engine: AsyncEngine, upkeep: PostgresUpkeep, caretaker: Caretaker
) -> Past:
    return await cleaned_up(world, engine, upkeep, caretaker)


async def test_partitions_touched_since_then_are_all(
    past: Past, upkeep: PostgresUpkeep, expiring: Expiring
):
    asked = {"through": VERSIONS}
    known = await upkeep.touched_partitions(past.table.id, after=CUT - 1, **asked)
    assert known
    assert await upkeep.touched_partitions(past.table.id, after=CUT - 2, **asked) is not None
    await expiring().round()
    found = await upkeep.touched_partitions(past.table.id, after=CUT - 1, **asked)
    assert found is not None
    assert sorted(found) == sorted(known)
    assert await upkeep.touched_partitions(past.table.id, after=CUT - 2, **asked) is None


async def test_sidecars_since_then_are_all_written_anew(
    past: Past, index: Index, expiring: Expiring
):
    sidecars = [
        Sidecar(after=after, name="s", size=1, modified_ms=1, num_adds=1, num_removes=0, digest=0)
        for after in (("", ""), ("x=1/", ""), ("y", ""))
    ]

    async def changed(since: int) -> set[tuple[str, str]]:
        # With an epoch of its own, it takes the place of a later one.
        made = KnownCheckpoint(version=since, epoch=since, kind=V2, shape="", sidecars=sidecars)
        await index.keep_checkpoint(past.table.id, made)
        known = await index.known_checkpoint(past.table.id)
        assert known is not None
        found = await index.changed_sidecars(past.table.id, known, version=VERSIONS)
        assert found is not None
        return set(found.after)

    assert await changed(VERSIONS) == set()
    assert await changed(CUT - 2) == {("", ""), ("x=1/", "")}
    await expiring().round()
    assert len(await changed(CUT - 2)) == 3
    assert await changed(VERSIONS) == set()


async def test_a_checkpoint_of_a_version_that_expires_meanwhile_is_given_up(
    past: Past, index: Index, expiring: Expiring
):
    head = replace(await index.snapshot_head(past.table.id, None), version=CUT - 1)
    await expiring().round()
    with pytest.raises(IndexUnavailable, match="expired while"):
        async for _ in index.file_rows(past.table.id, head, removed_after_ms=0):
            pass


async def test_a_scan_that_it_expires_under_says_so(past: Past, index: Index, expiring: Expiring):
    pages = index.files(past.table.id, CUT - 1)
    await expiring().round()
    with pytest.raises(NotFound, match="is not held any more"):
        async for _ in pages:
            pass


async def test_a_hook_that_was_behind_is_told_from_the_first_version_on(
    past: Past, index: Index, upkeep: PostgresUpkeep, expiring: Expiring, caplog
):
    caplog.set_level(logging.WARNING)
    hook = Noting()
    hooks = await caretaker_of(hook, index, upkeep, past.world.context.storage)
    await propose(past.world.context, past.table.id, proposal(add("later")))
    await hooks.round()
    assert hook.versions(past.table.id) == [VERSIONS + 1]
    await upkeep.set_back(past.table.id, KIND, to=3)
    await expiring().round()
    await hooks.round()
    assert hook.versions(past.table.id)[1:] == list(range(CUT, VERSIONS + 2))
    assert caplog.text.count("versions were gone from the log before a hook saw them") == 1


class TestVacuum:
    async def test_a_retention_beyond_the_first_version_is_refused(
        self, past: Past, expiring: Expiring
    ):
        await expiring().round()
        long = VacuumRequest(retain_ms=60 * 24 * 3600 * 1000)
        with pytest.raises(Refused, match=f"begins at version {CUT}, within the retention"):
            await begin_vacuum(past.world.context, past.table.id, long)
        await begin_vacuum(past.world.context, past.table.id, VacuumRequest())

    async def test_one_that_goes_on_meanwhile_deletes_nothing(
        self, past: Past, index: Index, expiring: Expiring
    ):
        """Which files were removed within its retention is not known any more."""
        long = VacuumRequest(retain_ms=60 * 24 * 3600 * 1000)
        plant(past.table, "orphan", age_s=100 * 24 * 3600)
        vacuum = await begin_vacuum(past.world.context, past.table.id, long)
        await expiring().round()
        last = [now async for now in vacuum.progress()][-1]
        assert (last.stage, last.deleted) == (Stage.FAILED, 0)
        assert "have expired meanwhile" in last.error.detail
