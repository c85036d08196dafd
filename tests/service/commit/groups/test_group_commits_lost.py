"""Groups whose COMMIT gets no answer: nobody is told what a member of it made of them."""

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from tests.builders.by_x import add, remove
from tests.builders.proposals import proposal
from tests.service.commit.committing import paths
from tests.service.commit.groups.grouping import instance, transactions
from tests.service.process.severing import Cut, severing
from tidegate_protocol.proposal.transaction import Conflict, Proposal
from tidegate_service.core.errors import CommitStateUnknown, IndexUnavailable
from tidegate_service.core.observe.faults import Side, Step
from tidegate_service.core.ports.outcomes import Committed
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.postgres.engine import create_engine

pytestmark = pytest.mark.anyio

COMMIT = b"COMMIT\0"

BOTH = pytest.mark.parametrize("catalog_managed", [False, True], ids=["plain", "catalog-managed"])
CUTS = pytest.mark.parametrize("cut", [Cut.BEFORE_IT_ARRIVES, Cut.BEFORE_THE_ANSWER])


@pytest.fixture
async def severed(database_url, anyio_backend):
    """An index whose connections can be cut, and what cuts them."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        async with severing(database_url, Path(folder)) as (url, between):
            engine = create_engine(url)
            yield PostgresIndex(engine), between
            await engine.dispose()


def written(sent: Proposal) -> bytes:
    """Part of the row that only its commit has."""
    return sent.digest().encode()


def deletes(path: str) -> Proposal:
    return proposal(remove(path), read_version=1, files=frozenset({path}))


@BOTH
@CUTS
async def test_all_are_decided_again(world, severed, cut, catalog_managed):
    cut_index, between = severed
    one = instance(world, index=cut_index)
    table = await world.create(catalog_managed=catalog_managed)
    await one.propose(table, proposal(add("a"), add("b")))
    one.groups.clear()
    sent = [deletes("a"), deletes("a"), proposal(add("c")), deletes("b")]
    between.watch(COMMIT, cut)
    won, lost, *others = await one.at_once(table, *sent)
    assert isinstance(lost, Conflict)
    assert (lost.winner.version, lost.path) == (won.record.version, "a")
    landed = [won, *others]
    assert [outcome.record.version for outcome in landed] == [2, 3, 4]
    # Those that had landed are found; a plain table's lie in its log, whatever the index says.
    found = cut is Cut.BEFORE_THE_ANSWER or not catalog_managed
    assert all(outcome.replayed is found for outcome in landed)
    assert [len(group) for group in one.groups] == [4, 1, 1, 1, 1]
    assert await paths(cut_index, table, 4) == ["c"]
    times = [outcome.record.timestamp for outcome in landed]
    assert times == sorted(set(times))


@CUTS
async def test_a_conflict_is_told_only_if_its_winner_landed(world, severed, cut):
    """Nobody may try again here, so what is told of the first group is all there is."""
    cut_index, between = severed
    one = instance(world, index=cut_index, commit_deadline_s=-1.0)
    table = await world.create(catalog_managed=True)
    await one.propose(table, proposal(add("a")))
    between.watch(COMMIT, cut)
    told = await one.at_once(table, deletes("a"), deletes("a"))
    assert [type(outcome) for outcome in told] == [CommitStateUnknown] * 2


async def test_what_was_not_committed_is_nobodys_winner(world, severed, other_index):
    """The window of a group that was lost is: others' versions stand where its own were."""
    cut_index, between = severed
    one = instance(world, index=cut_index, commit_deadline_s=-1.0)
    other = instance(world, index=other_index)
    table = await world.create(catalog_managed=True)
    await one.propose(table, proposal(add("a"), add("b")))
    between.watch(COMMIT, Cut.BEFORE_IT_ARRIVES)
    await one.at_once(table, deletes("a"))
    await other.propose(table, deletes("b"))
    await other.propose(table, proposal(add("c")))
    told = await one.at_once(table, deletes("b"), deletes("a"))
    assert isinstance(told[0], Conflict)
    assert (told[0].winner.version, told[0].path) == (2, "b")
    assert isinstance(told[1], Committed)
    assert told[1].record.version == 4


async def test_tables_of_a_lost_group_are_decided_again_each(world, severed, database_url):
    cut_index, between = severed
    one = instance(world, index=cut_index)
    tables = [await world.create(catalog_managed=True) for _ in range(3)]
    between.watch(COMMIT, Cut.BEFORE_IT_ARRIVES)
    told = await one.of_many((table, proposal(add("a"))) for table in tables)
    assert [outcome.record.version for outcome in told] == [1, 1, 1]
    assert {outcome.record.metrics.attempts for outcome in told} == {2}
    assert transactions(database_url, *tables) == 3


@BOTH
@pytest.mark.parametrize("when", [0, 2])
async def test_a_database_that_goes_away_before_the_commit(world, severed, catalog_managed, when):
    """What the members were, they are again; whoever was asking then has done nothing."""
    cut_index, between = severed
    one = instance(world, index=cut_index)
    table = await world.create(catalog_managed=catalog_managed)
    await one.propose(table, proposal(add("a")))
    sent = [deletes("a"), deletes("a"), proposal(add("b"))]
    # With the rows that are written: to tell the second's partition, or before COMMIT.
    between.watch(written(sent[when]), Cut.BEFORE_IT_ARRIVES)
    told = await one.at_once(table, *sent)
    second = Conflict if when else IndexUnavailable
    assert [type(outcome) for outcome in told] == [Committed, second, Committed]
    assert [told[0].record.version, told[2].record.version] == [2, 3]
    assert await paths(cut_index, table, 3) == ["b"]


LARGE = {"user_metadata": "x" * 70_000}
"""A file of this size is put by itself."""


class Overtaken:
    """Fault points where a file is there only when what was written ahead has ended, and then
    something is done, once."""

    def __init__(self, after: int, deed: Callable[[], object]) -> None:
        self._left = after
        self._deed = deed

    async def reached(self, step: Step, side: Side) -> None:
        if (step, side) != (Step.O6_PUT, Side.AFTER):
            return
        while any(task.get_name() == "write-ahead" for task in asyncio.all_tasks()):
            await asyncio.sleep(0)
        self._left -= 1
        if self._left == 0:
            self._deed()


class TestWrittenAhead:
    """A plain table's rows are written while the next file is; here the index refuses those of
    the second one, and takes them later."""

    @pytest.fixture
    def accept(self, database_url):
        with psycopg.connect(database_url, autocommit=True) as connection:
            connection.execute(
                "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
                "$$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '53100'; END $$"
            )
            connection.execute(
                "CREATE TRIGGER refuse BEFORE INSERT ON files FOR EACH ROW "
                "WHEN (new.path = 'b') EXECUTE FUNCTION refuse()"
            )
            yield lambda: connection.execute("DROP TRIGGER refuse ON files")

    @pytest.fixture
    def world(self, world):
        return world.limited(files_a_write=1, buffered_file_bytes=-1)

    async def test_who_has_put_a_file_may_have_landed(self, world, accept):
        faults = Overtaken(3, accept)
        one = instance(world, commit_deadline_s=-1.0, faults=faults)
        table = await world.create()
        sent = [proposal(add(name), **LARGE) for name in "abc"]
        told = await one.at_once(table, *sent)
        assert [type(outcome) for outcome in told] == [CommitStateUnknown] * 3, told
        again = await instance(world).at_once(table, *sent)
        assert [outcome.record.version for outcome in again] == [1, 2, 3]
        assert all(outcome.replayed for outcome in again)
        assert await paths(world.context.index, table, 3) == ["a", "b", "c"]

    async def test_all_are_found_again(self, world, accept):
        one = instance(world, faults=Overtaken(3, accept))
        table = await world.create()
        told = await one.at_once(table, *(proposal(add(name), **LARGE) for name in "abcd"))
        assert [outcome.record.version for outcome in told] == [1, 2, 3, 4]
        assert [outcome.replayed for outcome in told] == [True, True, True, False]
