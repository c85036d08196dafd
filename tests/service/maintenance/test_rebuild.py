"""Making the index anew from the log: afterwards everything is answered as before."""

import os
from dataclasses import replace

import psycopg
import pytest

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.log.foreign.foreign import FOREIGN_ADD, foreign_commit
from tests.service.maintenance.pictures import checkpointed, picture
from tests.service.maintenance.test_verify import busy_table
from tidegate_protocol.log.actions import Txn
from tidegate_protocol.proposal.transaction import Conflict
from tidegate_service.core.catalog_managed.publish import publish_table
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.commit.transaction_ids import abort
from tidegate_service.core.errors import NotFound, Refused, TableQuarantined
from tidegate_service.core.maintenance.end_quarantine import release_table
from tidegate_service.core.maintenance.rebuild import rebuild_table
from tidegate_service.core.maintenance.verify import verify_table
from tidegate_service.core.ports.outcomes import Committed
from tidegate_service.core.ports.records import TableState
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.core.tables.scan import ScanRequest, scan

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("catalog_managed", [False, True])
async def test_a_replay_tells_all_that_the_first_answer_told(world, database_url, catalog_managed):
    table = await world.create(catalog_managed=catalog_managed)
    body = proposal(add("a"))
    await propose(world.context, table.id, body)
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "UPDATE commits SET attempts = 3, duration_ms = 77, principal = 'job', request_id = 'r'"
        )
    before = (await propose(world.context, table.id, body)).record
    await rebuild_table(world.context, table.id)
    assert (await propose(world.context, table.id, body)).record == before
    assert (before.metrics.attempts, before.metrics.duration_ms) == (3, 77)


@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize("catalog_managed", [False, True])
async def test_a_rebuilt_table_is_the_same(world, catalog_managed, published):
    table = await busy_table(world, catalog_managed=catalog_managed)
    if published:
        await publish_table(world.context.index, world.context.storage, table)
    before = await picture(world, table)
    rebuilt = await rebuild_table(world.context, table.id)
    assert await picture(world, table) == before
    assert replace(rebuilt, epoch=0) == before[0]
    assert (await verify_table(world.context, table.id)).differences == ()


@pytest.mark.parametrize("catalog_managed", [False, True])
async def test_a_transaction_is_answered_as_before(world, catalog_managed):
    table = await world.create(catalog_managed=catalog_managed)
    body = proposal(add("a"), Txn(app_id="stream", version=1))
    landed = await propose(world.context, table.id, body)
    await abort(world.context, table.id, "never")
    await rebuild_table(world.context, table.id)
    again = await propose(world.context, table.id, body)
    assert again.replayed
    assert (again.record.version, again.record.timestamp, again.record.content_sha256) == (
        landed.record.version,
        landed.record.timestamp,
        landed.record.content_sha256,
    )
    with pytest.raises(Refused, match="aborted"):
        await propose(world.context, table.id, proposal(add("b"), transaction_id="never"))
    stale = proposal(add("b"), read_version=0, predicates=("x = 1",))
    assert isinstance(await propose(world.context, table.id, stale), Conflict)


async def test_damaged_rows_are_mended(world, database_url):
    table = await busy_table(world)
    before = await picture(world, table)
    with psycopg.connect(database_url) as connection:
        connection.execute("DELETE FROM files WHERE path = 'c'")
        connection.execute("UPDATE tables SET num_files = 9")
    await rebuild_table(world.context, table.id)
    assert await picture(world, table) == before


async def test_a_log_that_ends_before_the_index_is_refused(world):
    table = await busy_table(world)
    before = await picture(world, table)
    world.log_file(table, 4).unlink()
    with pytest.raises(Refused, match="ends at version 3, and the index knows versions up to 4"):
        await rebuild_table(world.context, table.id)
    assert await picture(world, table) == before


async def test_a_log_that_cannot_be_read_changes_nothing(world):
    table = await busy_table(world)
    before = await picture(world, table)
    world.log_file(table, 2).write_text("not json\n")
    with pytest.raises(Refused, match="cannot be read"):
        await rebuild_table(world.context, table.id)
    assert await picture(world, table) == before


async def test_another_file_where_a_version_is_to_be_published_is_refused(world):
    table = await busy_table(world, catalog_managed=True)
    await publish_table(world.context.index, world.context.storage, table)
    landed = await propose(world.context, table.id, proposal(add("d")))
    assert isinstance(landed, Committed)
    foreign_commit(world, table, 5, FOREIGN_ADD)
    with pytest.raises(Refused, match=r"version 5 .* other bytes"):
        await rebuild_table(world.context, table.id)


async def test_a_published_version_with_other_bytes_than_were_ratified_is_refused(world):
    table = await busy_table(world, catalog_managed=True)
    await publish_table(world.context.index, world.context.storage, table)
    before = await picture(world, table)
    file = world.log_file(table, 3)
    ratified = file.read_bytes()
    file.write_bytes(ratified + b"\n")
    with pytest.raises(Refused, match=r"version 3 .* other bytes than were ratified"):
        await rebuild_table(world.context, table.id)
    assert (await get_table(world.context, table.id)).state is TableState.QUARANTINED
    file.write_bytes(ratified)
    await release_table(world.context, table.id)
    assert await picture(world, table) == before


async def test_a_version_whose_publisher_died_is_published_by_it(world):
    table = await busy_table(world, catalog_managed=True)
    await publish_table(world.context.index, world.context.storage, table)
    landed = await propose(world.context, table.id, proposal(add("d")))
    content = await world.context.index.content(table.id, landed.record.version)
    world.log_file(table, 5).write_bytes(content)
    rebuilt = await rebuild_table(world.context, table.id)
    assert (rebuilt.latest_version, rebuilt.published_version) == (5, 5)


async def test_ids_outlive_the_versions_that_the_log_forgot(world):
    """A checkpoint takes the place of version 0 and 1; what landed as version 1 still did."""
    table = await world.create()
    body = proposal(add("a"))
    await propose(world.context, table.id, body)
    await propose(world.context, table.id, proposal(add("b")))
    checkpointed(world, table, 2)
    for version in (0, 1):
        world.log_file(table, version).unlink()
    for _ in range(2):
        rebuilt = await rebuild_table(world.context, table.id)
        assert (rebuilt.first_version, rebuilt.latest_version, rebuilt.num_files) == (2, 2, 2)
        again = await propose(world.context, table.id, body)
        assert (again.record.version, again.replayed) == (1, True)
    other = proposal(add("z"), transaction_id=body.transaction_id)
    with pytest.raises(Refused, match="another body"):
        await propose(world.context, table.id, other)
    assert (await verify_table(world.context, table.id)).differences == ()


async def test_a_plain_table_is_released_once_the_unreadable_version_is_mended(world):
    table = await world.create()
    world.log_file(table, 1).write_text("not json\n")
    with pytest.raises(TableQuarantined):
        await propose(world.context, table.id, proposal(add("a")))
    with pytest.raises(Refused, match="stays quarantined: version 1"):
        await release_table(world.context, table.id)
    foreign_commit(world, table, 1, FOREIGN_ADD)
    released = await release_table(world.context, table.id)
    assert (released.state, released.latest_version) == (TableState.ACTIVE, 1)
    landed = await propose(world.context, table.id, proposal(add("a")))
    assert landed.record.version == 2


async def test_a_rebuild_releases_a_table_too(world):
    table = await world.create()
    world.log_file(table, 1).write_text("not json\n")
    with pytest.raises(TableQuarantined):
        await propose(world.context, table.id, proposal(add("a")))
    world.log_file(table, 1).unlink()
    assert (await rebuild_table(world.context, table.id)).state is TableState.ACTIVE
    assert isinstance(await propose(world.context, table.id, proposal(add("a"))), Committed)


async def test_a_catalog_managed_table_is_released_once_the_other_file_is_away(world):
    table = await world.create(catalog_managed=True)
    world.log_folder(table).mkdir(parents=True)
    foreign_commit(world, table, 0, FOREIGN_ADD)
    await publish_table(world.context.index, world.context.storage, table)
    quarantined = await get_table(world.context, table.id)
    assert quarantined.state is TableState.QUARANTINED
    with pytest.raises(Refused, match="a file of version 0, and that version cannot be published"):
        await release_table(world.context, table.id)
    world.log_file(table, 0).unlink()
    released = await release_table(world.context, table.id)
    assert released.state is TableState.ACTIVE
    await publish_table(world.context.index, world.context.storage, released)
    assert (await get_table(world.context, table.id)).published_version == 0


async def test_a_table_that_is_not_quarantined_is_left_as_it_is(world):
    table = await world.create()
    assert await release_table(world.context, table.id) == table


async def test_a_file_behind_a_catalog_managed_table_is_no_version_of_it(world):
    """Whoever writes there is not asked; a rebuild must not take it for ratified."""
    table = await world.create(catalog_managed=True)
    await publish_table(world.context.index, world.context.storage, table)
    before = await picture(world, table)
    foreign_commit(world, table, 1, FOREIGN_ADD)
    rebuilt = await rebuild_table(world.context, table.id)
    assert (rebuilt.latest_version, rebuilt.num_files) == (0, 0)
    assert await picture(world, table) == before


async def test_a_rebuild_does_not_pass_over_another_file_in_the_place_of_a_version(world):
    table = await world.create(catalog_managed=True)
    world.log_folder(table).mkdir(parents=True)
    foreign_commit(world, table, 0, FOREIGN_ADD)
    await publish_table(world.context.index, world.context.storage, table)
    with pytest.raises(Refused, match="other bytes than were ratified"):
        await rebuild_table(world.context, table.id)
    assert (await get_table(world.context, table.id)).state is TableState.QUARANTINED


async def test_a_claim_to_an_id_stays_one_where_the_log_forgot_who_had_it(world):
    table = await world.create()
    body = proposal(add("a"))
    await propose(world.context, table.id, body)
    claim = {"commitInfo": {"timestamp": 1, "operation": "X", "txnId": body.transaction_id}}
    foreign_commit(world, table, 2, FOREIGN_ADD, claim)
    await propose(world.context, table.id, proposal(add("b")))
    checkpointed(world, table, 1)
    world.log_file(table, 0).unlink()
    world.log_file(table, 1).unlink()
    for _ in range(2):
        await rebuild_table(world.context, table.id)
        again = await propose(world.context, table.id, body)
        assert (again.record.version, again.replayed) == (1, True)


async def test_our_commits_keep_their_times_beside_files_that_are_younger(world):
    """As where the store's clock is ahead, or the log was copied."""
    table = await world.create()
    foreign_commit(world, table, 1, FOREIGN_ADD)
    body = proposal(add("a"))
    landed = await propose(world.context, table.id, body)
    ahead = landed.record.timestamp / 1000 + 3600
    os.utime(world.log_file(table, 1), (ahead, ahead))
    await rebuild_table(world.context, table.id)
    again = await propose(world.context, table.id, body)
    assert again.record.timestamp == landed.record.timestamp


async def test_a_scan_of_a_version_that_a_rebuild_left_behind_does_not_end_early(world):
    table = await world.create()
    for name in ("a", "b"):
        await propose(world.context, table.id, proposal(add(name)))
    begun = await scan(world.context, table.id, ScanRequest(version=1))
    checkpointed(world, table, 2)
    for version in (0, 1):
        world.log_file(table, version).unlink()
    await rebuild_table(world.context, table.id)
    with pytest.raises(NotFound, match="version 1"):
        [batch async for batch in begun.files]
