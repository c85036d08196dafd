"""Refusals that another head might not give: judged where the log ends, and final once given.

Of a plain table, an attempt whose PUT is late may still land when its transaction is refused. It
never does, because the refusal took the version that it was for.
"""

import json
from dataclasses import replace

import psycopg
import pytest
from deltalake import DeltaTable

from tests.builders.by_x import SCHEMA, add
from tests.builders.proposals import proposal
from tests.service.commit.groups.grouping import instance
from tests.service.commit.outcomes.test_aborts import left_on_its_way, refused_code
from tests.service.faults import Fault
from tidegate_protocol.base.problems import Code
from tidegate_protocol.proposal.transaction import Invalid
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.commit.transaction_ids import TransactionState, abort, status
from tidegate_service.core.errors import CommitStateUnknown, NotFound, Refused
from tidegate_service.core.log.catching_up.foreign_commits import FENCE_OPERATION
from tidegate_service.core.maintenance.forget import forget_table
from tidegate_service.core.maintenance.rebuild import rebuild_table
from tidegate_service.core.observe.faults import Side, Step
from tidegate_service.core.ports.outcomes import Committed, NothingToCommit
from tidegate_service.core.ports.store.put_result import PutResult
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.core.tables.register import RegisterTable, register_table

pytestmark = pytest.mark.anyio

NOT_NULL = {**SCHEMA, "fields": [{**SCHEMA["fields"][0], "nullable": False}, SCHEMA["fields"][1]]}
NOTHING_KEPT = {"delta.logRetentionDuration": "interval 0 seconds"}


def nowhere(**fields):
    """An append that needs the partition column to be nullable."""
    return proposal(add("x=__HIVE_DEFAULT_PARTITION__/a", x=None), **fields)


def rewritten(world, table, version, **changes):
    """Somebody else's commit, past the service, which changes the table's metadata."""
    (metadata,) = (
        action["metaData"] for action in world.actions_of(table, 0) if "metaData" in action
    )
    line = json.dumps({"metaData": {**metadata, **changes}})
    world.log_file(table, version).write_text(line + "\n")


def operations(world, table):
    """Of each version of the log behind the first."""
    files = sorted(world.log_folder(table).glob("*.json"))[1:]
    infos = [json.loads(file.read_text().splitlines()[0]) for file in files]
    return [info.get("commitInfo", {}).get("operation") for info in infos]


async def head_of(world, table):
    return (await get_table(world.context, table.id)).latest_version


class TestInvalid:
    """Judged at the head, since it names no version."""

    @pytest.mark.parametrize("new", [False, True])
    async def test_what_is_valid_at_the_logs_end_lands(self, world, new):
        table = await world.create(schema=NOT_NULL)
        rewritten(world, table, 1, schemaString=json.dumps(SCHEMA))
        landed = await propose(world.context, table.id, nowhere(has_new_id=new))
        assert isinstance(landed, Committed)
        assert landed.record.version == 2

    async def test_what_a_version_that_comes_in_between_makes_valid_lands(self, world, faults):
        table = await world.create(schema=NOT_NULL)

        def first(version):
            if version == 1:
                rewritten(world, table, 1, schemaString=json.dumps(SCHEMA))

        faults.before = first
        landed = await propose(world.context, table.id, nowhere())
        assert landed.record.version == 2

    async def test_what_is_invalid_there_takes_the_next_version_and_closes_its_id(self, world):
        table = await world.create(schema=NOT_NULL)
        rewritten(world, table, 1, name="other")
        body = nowhere()
        assert isinstance(await propose(world.context, table.id, body), Invalid)
        assert operations(world, table) == [None, FENCE_OPERATION]
        assert await head_of(world, table) == 2
        known = await status(world.context, table.id, body.transaction_id)
        assert known.state is TransactionState.ABORTED
        rewritten(world, table, 3, schemaString=json.dumps(SCHEMA))
        assert await refused_code(world, table, body) is Code.TRANSACTION_ABORTED
        await abort(world.context, table.id, body.transaction_id)
        assert not world.log_file(table, 4).exists()

    async def test_a_catalog_managed_table_closes_it_without_a_version(self, world):
        table = await world.create(schema=NOT_NULL, catalog_managed=True)
        body = nowhere()
        assert isinstance(await propose(world.context, table.id, body), Invalid)
        assert await refused_code(world, table, body) is Code.TRANSACTION_ABORTED
        assert await head_of(world, table) == 0

    async def test_an_id_that_nobody_had_before_needs_no_version(self, world):
        table = await world.create(schema=NOT_NULL)
        body = nowhere(has_new_id=True)
        assert isinstance(await propose(world.context, table.id, body), Invalid)
        assert operations(world, table) == []
        again = replace(body, has_new_id=False)
        assert await refused_code(world, table, again) is Code.TRANSACTION_ABORTED

    async def test_an_id_that_was_tried_in_this_request_needs_one(self, world, faults):
        table = await world.create()

        class Spoilt:
            """Before it is decided for the second time, somebody else was faster."""

            decided = 0

            async def reached(self, step, side):
                if (step, side) == (Step.O4_DECIDE, Side.BEFORE):
                    self.decided += 1
                    if self.decided == 2:
                        rewritten(world, table, 1, schemaString=json.dumps(NOT_NULL))

        faults.faults.extend([Fault.HELD, Fault.REFUSED])
        one = instance(world, faults=Spoilt())
        body = nowhere(has_new_id=True)
        assert isinstance(await one.propose(table, body), Invalid)
        assert operations(world, table) == [None, FENCE_OPERATION]
        assert await faults.deliver() == [PutResult.EXISTS]

    async def test_a_reason_that_no_version_changes_leaves_no_trace(self, world):
        table = await world.create()
        body = proposal(add("a", size=0))
        for _ in range(2):
            assert isinstance(await propose(world.context, table.id, body), Invalid)
        assert operations(world, table) == []
        fits = proposal(add("a"), transaction_id=body.transaction_id)
        assert (await propose(world.context, table.id, fits)).record.version == 1

    async def test_a_fence_without_an_answer_says_nothing_yet(self, world, faults):
        table = await world.create(schema=NOT_NULL)
        one = instance(world, commit_deadline_s=-1.0)
        body = nowhere()
        faults.faults.extend([Fault.HELD, Fault.REFUSED])
        with pytest.raises(CommitStateUnknown) as unknown:
            await one.propose(table, body)
        assert unknown.value.transaction_id == body.transaction_id
        assert await faults.deliver() == [PutResult.CREATED]
        assert await refused_code(world, table, body) is Code.TRANSACTION_ABORTED


async def test_what_is_empty_where_the_index_ends_may_not_be_at_the_logs_end(world):
    """Under WriteSerializable, Delta records a commit of nothing."""
    table = await world.create()
    empty = proposal(skip_if_empty=True)
    assert isinstance(await propose(world.context, table.id, empty), NothingToCommit)
    rewritten(world, table, 1, configuration={"delta.isolationLevel": "WriteSerializable"})
    landed = await propose(world.context, table.id, empty)
    assert isinstance(landed, Committed)
    assert landed.record.version == 2


class TestReadVersionTooOld:
    @pytest.fixture
    async def late(self, world, faults):
        """A table, and a transaction of it whose PUT for version 4 is on its way."""
        table = await world.create(properties=NOTHING_KEPT)
        for number in range(3):
            await propose(world.context, table.id, proposal(add(f"x=1/{number}")))
        body = proposal(add("x=2/late", x="2"), read_version=1, predicates=("x = 2",))
        faults.faults.extend([Fault.HELD, Fault.REFUSED] * 5)
        with pytest.raises(CommitStateUnknown):
            await propose(world.context, table.id, body)
        theirs = DeltaTable(table.location)
        theirs.create_checkpoint()
        theirs.cleanup_metadata()
        assert not world.log_file(table, 2).exists()
        return table, body

    async def never_lands(self, world, faults, table, body):
        with pytest.raises(Refused) as refusal:
            await propose(world.context, table.id, body)
        assert refusal.value.code is Code.READ_VERSION_TOO_OLD
        assert set(await faults.deliver()) == {PutResult.EXISTS}
        assert await refused_code(world, table, body) is Code.TRANSACTION_ABORTED
        (info,) = world.actions_of(table, 4)
        assert info["commitInfo"]["operation"] == FENCE_OPERATION
        assert await head_of(world, table) == 4
        more = await propose(world.context, table.id, proposal(add("x=1/more")))
        assert more.record.version == 5

    async def test_of_an_index_that_was_rebuilt(self, world, faults, late):
        table, body = late
        await rebuild_table(world.context, table.id)
        await self.never_lands(world, faults, table, body)

    async def test_of_a_table_that_was_registered_again(self, world, faults, late):
        table, body = late
        await forget_table(world.context, table.id)
        register = RegisterTable(name=table.name, location=table.location)
        table, _ = await register_table(world.context, register)
        await self.never_lands(world, faults, table, body)

    async def test_what_arrived_before_it_was_refused_has_landed(self, world, faults, late):
        table, body = late
        await rebuild_table(world.context, table.id)
        assert (await faults.deliver())[0] is PutResult.CREATED
        landed = await propose(world.context, table.id, body)
        assert (landed.record.version, landed.replayed) == (4, True)


class TestClosedByAnEarlierRelease:
    """Such an id has a tombstone that no version of the log stands for."""

    @pytest.fixture
    async def closed(self, world, faults, database_url):
        """A table, and a body on its way for version 1 under an id that was closed so."""
        table = await world.create()
        body = proposal(add("a"))
        await left_on_its_way(world, faults, table, body)
        with psycopg.connect(database_url) as connection:
            connection.execute(
                "INSERT INTO aborted_transactions (table_id, transaction_id, unfenced_after) "
                "VALUES (%s, %s, %s)",
                # Whatever the head was: the attempt may be for a version behind the next one.
                (table.id, body.transaction_id, -1),
            )
        return table, body

    async def test_a_proposal_under_it_is_refused_once_it_is_fenced(self, world, faults, closed):
        table, body = closed
        for _ in range(2):
            assert await refused_code(world, table, body) is Code.TRANSACTION_ABORTED
            assert operations(world, table) == [FENCE_OPERATION]
        assert set(await faults.deliver()) == {PutResult.EXISTS}

    async def test_so_is_an_abort_of_it(self, world, faults, closed):
        table, body = closed
        for _ in range(2):
            await abort(world.context, table.id, body.transaction_id)
            assert operations(world, table) == [FENCE_OPERATION]
        assert set(await faults.deliver()) == {PutResult.EXISTS}

    async def test_until_then_nothing_is_said_of_it(self, world, closed):
        table, body = closed
        with pytest.raises(NotFound) as unknown:
            await status(world.context, table.id, body.transaction_id)
        assert unknown.value.code is Code.TRANSACTION_NOT_FOUND

    async def test_what_arrived_before_that_has_landed(self, world, faults, closed):
        table, body = closed
        await faults.deliver()
        assert (await propose(world.context, table.id, body)).replayed
        assert await head_of(world, table) == 1
