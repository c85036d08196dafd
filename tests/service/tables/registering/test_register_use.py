"""What a registered table can be used for: as if it had been here from the start."""

import asyncio
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from tests.builders.by_x import PROTOCOL, add, metadata, remove
from tests.builders.proposals import proposal
from tests.service.commit.committing import scanned
from tests.service.process.severing import Cut, severing
from tests.service.tables.delta_logs import DeltaLog, folded, lines_of, names
from tests.service.tables.registering.test_register_broken import rows_left
from tidegate_protocol.log.actions import CommitInfo, Txn
from tidegate_protocol.proposal.transaction import Conflict
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.commit.transaction_ids import abort, app_transaction
from tidegate_service.core.errors import NotFound, Refused, ShuttingDown, TableExists
from tidegate_service.core.maintenance.forget import forget_table
from tidegate_service.core.ports.outcomes import Committed
from tidegate_service.core.tables.history import content, history
from tidegate_service.core.tables.register import RegisterTable, register_table
from tidegate_service.core.tables.scan import ScanRequest, scan
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.postgres.engine import create_engine

pytestmark = pytest.mark.anyio

HISTORY = (
    (metadata(), add("a"), add("b", "2")),
    (add("c"), CommitInfo(txn_id="theirs", operation="WRITE", is_blind_append=True)),
    (remove("b", "2"), add("d", "2")),
    (add("e", "2"), CommitInfo(txn_id="theirs", operation="WRITE", is_blind_append=True)),
)


@pytest.fixture
def log(tmp_path):
    log = DeltaLog(tmp_path / "table")
    log.first(*HISTORY[0][1:])
    for version, actions in enumerate(HISTORY[1:], start=1):
        log.commit(version, *actions)
    return log


def shortened(log: DeltaLog, base: int) -> None:
    """Only a checkpoint is left of the versions up to the base."""
    snapshots = tuple(folded([(PROTOCOL, *HISTORY[0]), *HISTORY[1:]]))
    log.checkpoint(base, lines_of(snapshots[base]))
    for version in range(base + 1):
        log.path(version).unlink()


async def register(world, log: DeltaLog, name: str | None = None):
    table, _ = await register_table(
        world.context, RegisterTable(name=name or next(names), location=log.location)
    )
    return table


class TestAgain:
    async def test_the_same_request_finds_the_table(self, world, log):
        asked = RegisterTable(name=next(names), location=log.location)
        first, created = await register_table(world.context, asked)
        log.commit(4, add("f"))
        again, created_again = await register_table(
            world.context, RegisterTable(name=asked.name.upper(), location=f"{log.location}/")
        )
        assert (created, created_again) == (True, False)
        assert (again.id, again.latest_version) == (first.id, 3)

    async def test_both_of_two_at_once_get_the_one_table(self, world, log):
        asked = RegisterTable(name=next(names), location=log.location)
        answers = await asyncio.gather(*(register_table(world.context, asked) for _ in range(4)))
        assert len({table.id for table, _ in answers}) == 1
        assert sorted(created for _, created in answers) == [False, False, False, True]

    async def test_a_table_that_was_created_here_is_found_too(self, world):
        table = await world.create()
        found, created = await register_table(
            world.context, RegisterTable(name=table.name, location=table.location)
        )
        assert (found.id, created) == (table.id, False)

    async def test_another_name_for_the_location(self, world, log):
        await register(world, log)
        with pytest.raises(TableExists):
            await register(world, log)

    async def test_another_location_for_the_name(self, world, log, tmp_path):
        table = await register(world, log)
        second = DeltaLog(tmp_path / "second")
        second.first()
        with pytest.raises(TableExists):
            await register(world, second, table.name)

    async def test_a_location_inside_another_tables(self, world, log):
        await register(world, log)
        inside = DeltaLog(log.table / "inside")
        inside.first()
        with pytest.raises(TableExists):
            await register(world, inside)

    @pytest.mark.parametrize(
        "location", ["file:///elsewhere/t", "s3://bucket/t", "nonsense", "{}/../t"]
    )
    async def test_a_location_that_is_not_allowed(self, world, log, location, database_url):
        with pytest.raises(Refused) as refused:
            await register_table(
                world.context,
                RegisterTable(name=next(names), location=location.format(log.location)),
            )
        assert refused.value.code == "invalid-location"
        assert set(rows_left(database_url).values()) == {0}

    async def test_a_link_that_leads_out_of_the_warehouse(self, world, tmp_path_factory, tmp_path):
        outside = DeltaLog(tmp_path_factory.mktemp("outside") / "t")
        outside.first()
        (tmp_path / "link").symlink_to(outside.table)
        with pytest.raises(Refused) as refused:
            await register_table(
                world.context,
                RegisterTable(name=next(names), location=f"{tmp_path.as_uri()}/link"),
            )
        assert refused.value.code == "invalid-location"

    async def test_a_request_that_went_away_leaves_its_registration_to_end(self, world, log):
        asked = RegisterTable(name=next(names), location=log.location)
        request = asyncio.create_task(register_table(world.context, asked))
        while not world.context.running.under_way(("register", log.location)):
            await asyncio.sleep(0)
        request.cancel()
        assert await world.context.running.drain(timeout_s=30)
        table = await world.context.index.table(asked.name)
        assert table is not None
        assert table.latest_version == 3
        with pytest.raises(ShuttingDown):
            await register_table(
                world.context, RegisterTable(name=next(names), location=f"{log.location}2")
            )


class TestLostAnswers:
    @pytest.mark.parametrize("cut", [Cut.BEFORE_IT_ARRIVES, Cut.BEFORE_THE_ANSWER])
    async def test_a_registration_whose_commit_got_no_answer(self, world, log, database_url, cut):
        """It is done again under the lock, which either finds the first one or replaces it."""
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            async with severing(database_url, Path(folder)) as (url, between):
                engine = create_engine(url)
                index = PostgresIndex(engine, answer_timeout_s=5)
                cut_world = replace(world, context=replace(world.context, index=index))
                between.watch(b"COMMIT\0", cut)
                table, created = await register_table(
                    cut_world.context, RegisterTable(name=next(names), location=log.location)
                )
                await engine.dispose()
        assert created
        found = await world.context.index.table(table.name)
        assert (found.id, found.latest_version) == (table.id, 3)
        assert rows_left(database_url)["tables"] == 1


class TestTransactions:
    async def test_our_own_commits_come_back_as_they_were(self, world):
        """A table of ours, forgotten and registered: every retry is answered as before."""
        table = await world.create()
        bodies = [proposal(add(f"f{number}"), user_metadata=f"m{number}") for number in range(3)]
        landed = [await propose(world.context, table.id, body) for body in bodies]
        before = await world.context.index.history(
            table.id, from_version=None, to_version=None, limit=9
        )
        await forget_table(world.context, table.id)
        again, created = await register_table(
            world.context, RegisterTable(name=table.name, location=table.location)
        )
        assert created
        after = await world.context.index.history(
            again.id, from_version=None, to_version=None, limit=9
        )
        assert [(c.version, c.transaction_id, c.body_digest, c.foreign) for c in after] == [
            (c.version, c.transaction_id, c.body_digest, c.foreign) for c in before
        ]
        assert [c.content_sha256 for c in after] == [c.content_sha256 for c in before]
        for body, first in zip(bodies, landed, strict=True):
            replay = await propose(world.context, again.id, body)
            assert isinstance(replay, Committed)
            assert (replay.replayed, replay.record.version) == (True, first.record.version)
        assert not world.log_file(again, 4).exists()

    async def test_an_id_of_ours_is_not_taken_by_another_body(self, world):
        table = await world.create()
        body = proposal(add("a"))
        await propose(world.context, table.id, body)
        await forget_table(world.context, table.id)
        again, _ = await register_table(
            world.context, RegisterTable(name=table.name, location=table.location)
        )
        other = proposal(add("b"), transaction_id=body.transaction_id)
        with pytest.raises(Refused) as refused:
            await propose(world.context, again.id, other)
        assert refused.value.code == "transaction-id-reused"

    async def test_an_id_that_two_commits_claim_is_the_first_ones(self, world, log):
        table = await register(world, log)
        commits = await world.context.index.history(
            table.id, from_version=None, to_version=None, limit=9
        )
        assert [c.transaction_id for c in reversed(commits)] == [None, "theirs", None, None]
        assert all(commit.foreign for commit in commits)
        with pytest.raises(Refused, match="has landed as version 1"):
            await abort(world.context, table.id, "theirs")


class TestConflicts:
    async def test_an_old_read_version_is_judged_against_every_winner(self, world, log):
        table = await register(world, log)
        reading = proposal(add("x", "2"), read_version=0, predicates=("x = 2",))
        lost = await propose(world.context, table.id, reading)
        assert isinstance(lost, Conflict)
        assert lost.winner.version == 2
        blind = await propose(world.context, table.id, proposal(add("x"), read_version=0))
        assert (blind.record.version, blind.record.rebased_over) == (4, 3)
        deleting = proposal(remove("b", "2"), read_version=1, files=("b",))
        assert isinstance(await propose(world.context, table.id, deleting), Conflict)

    async def test_the_base_can_be_read_and_what_lies_before_it_cannot(self, world, log):
        shortened(log, 2)
        table = await register(world, log)
        landed = await propose(world.context, table.id, proposal(add("x"), read_version=2))
        assert (landed.record.version, landed.record.rebased_over) == (4, 1)
        reading = proposal(add("y", "2"), read_version=2, predicates=("x = 2",))
        lost = await propose(world.context, table.id, reading)
        assert isinstance(lost, Conflict)
        assert lost.winner.version == 3
        with pytest.raises(Refused) as refused:
            await propose(world.context, table.id, proposal(add("z"), read_version=1))
        assert refused.value.code == "read-version-too-old"

    async def test_files_of_the_base_are_removed_like_any(self, world, log):
        shortened(log, 2)
        table = await register(world, log)
        await propose(world.context, table.id, proposal(remove("a"), read_version=3, files=("a",)))
        assert (await world.context.index.table(table.id)).num_files == 3
        found = await scan(world.context, table.id, ScanRequest(version=2))
        assert [add.path for add in await scanned(found)] == ["a", "c", "d"]

    async def test_a_foreign_commit_after_it_is_seen(self, world, log):
        table = await register(world, log)
        log.commit(4, add("theirs", "2"))
        reading = proposal(add("x", "2"), read_version=3, predicates=("x = 2",))
        lost = await propose(world.context, table.id, reading)
        assert isinstance(lost, Conflict)
        assert (lost.winner.version, lost.path) == (4, "theirs")


class TestBelowTheBase:
    async def test_it_is_not_there(self, world, log):
        shortened(log, 2)
        table = await register(world, log)
        _, commits = await history(
            world.context, table.id, from_version=None, to_version=None, limit=9
        )
        assert [commit.version for commit in commits] == [3, 2]
        for version in (0, 1):
            with pytest.raises(NotFound, match="the first one that is held is 2") as missing:
                await scan(world.context, table.id, ScanRequest(version=version))
            assert missing.value.code == "version-not-found"
            with pytest.raises(NotFound, match="the first one that is held is 2") as missing:
                await content(world.context, table.id, version)
            assert missing.value.code == "version-not-found"
        with pytest.raises(NotFound, match="the first one here is 2") as missing:
            await scan(world.context, table.id, ScanRequest(timestamp=1))
        assert missing.value.code == "version-not-found"

    async def test_the_bytes_of_a_base_without_a_commit_are_gone(self, world, log):
        shortened(log, 2)
        table = await register(world, log)
        with pytest.raises(NotFound, match="known from a checkpoint only"):
            await content(world.context, table.id, 2)
        assert await content(world.context, table.id, 3) == log.path(3).read_bytes()

    async def test_applications_go_on_where_they_were(self, world, tmp_path):
        log = DeltaLog(tmp_path / "table")
        log.first(Txn(app_id="stream", version=41))
        table = await register(world, log)
        found = await app_transaction(world.context, table.id, "stream")
        assert found is not None
        assert found.version == 41
