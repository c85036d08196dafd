"""What has expired leaves the index, and whatever is still promised is told as before."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.upkeep.aged import age, commit, let_it_be_tomorrow
from tests.service.upkeep.checkpointed import checkpointed
from tests.service.upkeep.clean_up.long_past import CUT, VERSIONS, Past, cleaned_up
from tests.service.upkeep.clean_up.test_clean_up_killed import Killed, KilledAt
from tests.service.upkeep.clean_up.test_retentions import said
from tests.service.upkeep.conftest import Expiring
from tests.service.world import World
from tidegate_protocol.base.problems import Code
from tidegate_service.background.caretaker import Caretaker
from tidegate_service.background.publisher import Publisher
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import NotFound, Refused
from tidegate_service.core.maintenance.rebuild import rebuild_table
from tidegate_service.core.maintenance.verify import verify_table
from tidegate_service.core.observe.faults import ExpiryStep, Side
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.upkeep.expired import Versions
from tidegate_service.core.ports.upkeep.upkeep import UpkeepRecord
from tidegate_service.core.tables import history
from tidegate_service.core.tables.scan import ScanRequest, scan
from tidegate_service.core.upkeep.expired_versions import ExpiredVersions
from tidegate_service.index.limits import IndexLimits
from tidegate_service.index.upkeep.standing import PostgresUpkeep

pytestmark = pytest.mark.anyio


Making = Callable[..., Awaitable[Past]]


@pytest.fixture
def making(
    world: World, engine: AsyncEngine, upkeep: PostgresUpkeep, caretaker: Caretaker
) -> Making:
    """Tables whose logs were cleaned up, made with other options."""
    return partial(cleaned_up, world, engine, upkeep, caretaker)


@pytest.fixture
def upkeep(engine: AsyncEngine) -> PostgresUpkeep:
    return PostgresUpkeep(engine, limits=IndexLimits(expired_versions=4, expired_files=3))


@pytest.fixture
async def past(making: Making) -> Past:
    """A plain table, of which a few rows go at a time."""
    return await making()


async def rows(engine: AsyncEngine, query: str) -> list[tuple[object, ...]]:
    async with engine.connect() as connection:
        return [tuple(row) for row in await connection.execute(text(query))]


async def check_consistent(past: Past) -> None:
    found = await verify_table(past.world.context, past.table.id)
    assert (found.differences, found.next_version) == ((), None)


class TestPromises:
    @pytest.mark.parametrize(("seed", "catalog_managed"), [(0, False), (1, True), (2, False)])
    async def test_what_is_left_is_told_as_before(
        self, making: Making, expiring: Expiring, seed: int, catalog_managed: bool
    ):
        past = await making(seed=seed, catalog_managed=catalog_managed)
        before = await past.promised()
        assert await expiring().round() == 1
        assert (await past.head()).first_version == CUT
        assert await past.promised() == before
        await check_consistent(past)
        await propose(past.world.context, past.table.id, proposal(add("later")))
        await Publisher(past.world.context.index, past.world.context.storage).round()
        await rebuild_table(past.world.context, past.table.id)
        again = await past.promised()
        # The versions behind are read from the log again, which has not their new dates.
        assert again["receipts"][: CUT - 1] == before["receipts"][: CUT - 1]
        assert again["txns"] == before["txns"]
        await check_consistent(past)

    async def test_of_what_was_before_nothing_is_left_but_ids(
        self, past: Past, engine: AsyncEngine, expiring: Expiring
    ):
        async with engine.begin() as connection:
            for removed in (CUT, CUT + 1):
                values = f"SELECT id, '{removed}', 0, '', {removed} FROM tables"
                await connection.execute(text(f"INSERT INTO removed_domains {values}"))
        await expiring().round()
        domains = "SELECT removed_version FROM removed_domains"
        assert await rows(engine, domains) == [(CUT + 1,)]
        assert await rows(engine, "SELECT min(version), count(*) FROM commits") == [
            (CUT, VERSIONS - CUT + 1)
        ]
        assert await rows(engine, f"SELECT 1 FROM files WHERE removed_version < {CUT}") == []
        older = f"SELECT count(*) FROM metadata_versions WHERE version <= {CUT}"
        assert await rows(engine, older) == [(1,)]
        kept = await rows(engine, "SELECT version, details::text FROM past_commits ORDER BY 1")
        assert kept == [(version, "{}") for version in range(CUT)]
        assert await rows(engine, "SELECT version FROM commits WHERE previous_version IS NULL") == [
            (CUT,)
        ]

    async def test_versions_before_are_not_found(self, past: Past, expiring: Expiring):
        await expiring().round()
        context, name = past.world.context, past.table.name
        for request in (ScanRequest(version=CUT - 1), ScanRequest(timestamp=1)):
            with pytest.raises(NotFound) as missing:
                await scan(context, name, request)
            assert missing.value.code is Code.VERSION_NOT_FOUND
        with pytest.raises(NotFound, match=f"the first one that is held is {CUT}"):
            await history.content(context, name, CUT - 1)
        with pytest.raises(Refused, match=f"expected {CUT} to {VERSIONS}"):
            await verify_table(context, name, from_version=CUT - 1)

    async def test_old_read_versions_are_too_old(self, past: Past, expiring: Expiring):
        await expiring().round()
        late = proposal(add("late"), read_version=CUT - 1)
        with pytest.raises(Refused) as refused:
            await propose(past.world.context, past.table.id, late)
        assert refused.value.code is Code.READ_VERSION_TOO_OLD


@pytest.mark.parametrize("side", list(Side))
@pytest.mark.parametrize(
    "at",
    [(ExpiryStep.DROP_VERSIONS, 1), (ExpiryStep.DROP_VERSIONS, 4), (ExpiryStep.DROP_FILES, 3)],
)
class TestKilled:
    async def test_between_any_two_batches_all_is_told(
        self, past: Past, engine: AsyncEngine, expiring: Expiring, at, side
    ):
        before = await past.promised()
        with pytest.raises(Killed):
            await expiring(faults=KilledAt(at, side)).round()
        first = (await past.head()).first_version
        assert first in (0, 4, 8, 12, CUT)
        assert await past.promised() == before
        await check_consistent(past)
        assert (await past.at(first))[0] == first
        async with engine.begin() as connection:
            await connection.execute(
                text("UPDATE table_upkeep SET claimed_until = claimed_until - interval '1 day'")
            )
        assert await expiring().round() == 1
        assert await past.promised() == before
        assert await rows(engine, f"SELECT 1 FROM files WHERE removed_version < {CUT}") == []
        assert await expiring().round() == 0


async def test_two_instances_at_once_do_no_harm(
    past: Past, engine: AsyncEngine, expiring: Expiring, index: Index, upkeep: PostgresUpkeep
):
    """A claim can be lost while its holder goes on."""
    before = await past.promised()
    jobs = [ExpiredVersions(index, upkeep) for _ in range(3)]
    record = UpkeepRecord(version=-1, done_ms=None, failures=0, trouble=None)
    head = await past.head()
    done = await asyncio.gather(*(job.run(head, record) for job in jobs))
    assert {each.version for each in done} <= {CUT, 0}
    assert await past.promised() == before
    await check_consistent(past)


async def test_commits_go_on_meanwhile(past: Past, expiring: Expiring):
    writers = [commit(past.world, past.table, 10) for _ in range(2)]
    await asyncio.gather(expiring().round(), *writers)
    head = await past.head()
    assert (head.first_version, head.latest_version) == (CUT, VERSIONS + 20)
    await check_consistent(past)


async def test_the_next_cut_goes_on_from_there(
    past: Past, engine: AsyncEngine, caretaker: Caretaker, expiring: Expiring
):
    await expiring().round()
    await checkpointed(past.world, past.table, VERSIONS)
    await commit(past.world, past.table, 2)
    await age(past.world, engine, past.table, {range(CUT, VERSIONS + 1): 39})
    before = await past.promised(VERSIONS)
    assert await expiring().round() == 0
    await let_it_be_tomorrow(engine)
    await caretaker.round()
    await expiring().round()
    assert (await past.head()).first_version == VERSIONS
    assert await past.promised(VERSIONS) == before
    await check_consistent(past)


class TestKept:
    async def test_what_was_removed_not_long_ago(self, making: Making, expiring: Expiring):
        """However short the log's retention: checkpoints and VACUUM go by them."""
        longer = {"delta.deletedFileRetentionDuration": "interval 50 days"}
        past = await making(properties=longer)
        before = await past.promised(0)
        await expiring().round()
        assert await past.promised(0) == before
        assert (await past.head()).first_version == 0

    async def test_where_it_cannot_be_read_how_long(self, past: Past, expiring: Expiring):
        await said(past.world, past.table, delta_deletedFileRetentionDuration="P90D")
        await expiring().round()
        assert (await past.head()).first_version == 0

    async def test_a_remove_that_says_it_was_later(
        self, past: Past, engine: AsyncEngine, expiring: Expiring
    ):
        """By its own clock, which is ahead."""
        later = text(
            "UPDATE files SET deletion_timestamp = 4000000000000 WHERE removed_version < :cut"
        )
        async with engine.begin() as connection:
            touched = (await connection.execute(later, {"cut": CUT})).rowcount
        assert touched > 0
        await expiring().round()
        left = f"SELECT count(*) FROM files WHERE removed_version < {CUT}"
        assert await rows(engine, left) == [(touched,)]
        await check_consistent(past)

    async def test_nothing_of_a_quarantined_table(
        self, past: Past, index: Index, engine: AsyncEngine, upkeep: PostgresUpkeep
    ):
        head = await past.head()
        async with index.commit_section(past.table.id) as section:
            await section.quarantine("as a test")
            await section.save()
        kind = ExpiredVersions.kind
        asked = {"below": CUT, "epoch": head.epoch}
        assert await upkeep.drop_versions(past.table.id, kind, **asked) is None
        assert (await past.head()).first_version == 0

    async def test_nothing_of_an_index_made_anew(
        self, past: Past, index: Index, upkeep: PostgresUpkeep
    ):
        head = await past.head()
        await rebuild_table(past.world.context, past.table.id)
        asked = {"below": VERSIONS, "epoch": head.epoch}
        assert await upkeep.drop_versions(past.table.id, ExpiredVersions.kind, **asked) is None

    async def test_what_is_not_published(
        self, world: World, upkeep: PostgresUpkeep, engine: AsyncEngine
    ):
        table = await world.create(catalog_managed=True)
        await commit(world, table, 3)
        asked = {"below": 3, "epoch": 0}
        dropped = await upkeep.drop_versions(table.id, ExpiredVersions.kind, **asked)
        assert dropped == Versions(first=0, dropped=0)
        assert await rows(engine, "SELECT count(*) FROM commits") == [(4,)]

    async def test_ids_that_its_metadata_had(
        self, past: Past, index: Index, expiring: Expiring, engine: AsyncEngine
    ):
        """By which its log is known again once it was forgotten."""
        await expiring().round()
        assert past.table.metadata is not None
        kept = await rows(engine, "SELECT metadata_id FROM past_metadata_ids")
        assert kept == [(past.table.metadata.id,)]

    async def test_who_made_a_commit_that_has_no_id(
        self, past: Past, engine: AsyncEngine, expiring: Expiring
    ):
        async with engine.begin() as connection:
            await connection.execute(
                text("UPDATE commits SET transaction_id = NULL, principal = 'ann' WHERE version=3")
            )
        await expiring().round()
        query = "SELECT version, principal FROM audit WHERE deed = 'commit'"
        assert await rows(engine, query) == [(3, "ann")]


async def test_a_cut_table_whose_rows_were_changed_is_found_out(
    past: Past, engine: AsyncEngine, expiring: Expiring
):
    await expiring().round()
    async with engine.begin() as connection:
        await connection.execute(
            text("DELETE FROM files WHERE added_version < :cut AND removed_version IS NULL"),
            {"cut": CUT},
        )
    found = await verify_table(past.world.context, past.table.id)
    assert any(each.version == CUT for each in found.differences)
