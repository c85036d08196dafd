"""What the index knows of a table's versions, under the lock and beside it."""

import uuid
from dataclasses import replace

import msgspec
import pytest

from tests.builders.by_x import METADATA, PROTOCOL, add, remove
from tests.service.commit.committing import append, create, land, new_table, quarantine, ratified
from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.actions import DomainMetadata, Metadata, Protocol, Txn
from tidegate_protocol.log.codec import decode, encode
from tidegate_protocol.proposal.transaction import IsolationLevel
from tidegate_service.core.access.roles import OPERATOR
from tidegate_service.core.errors import NotFound
from tidegate_service.core.instance.replicated_heads import ReplicatedHeads
from tidegate_service.core.ports.records import Aborted, QuarantineCause, TableState

pytestmark = pytest.mark.anyio


def changed_metadata(**fields: object) -> Metadata:
    return decode(encode(msgspec.structs.replace(METADATA, raw=b"", **fields)))


async def test_a_new_table_has_version_0(index):
    table = new_table(name="Main.Air.Flights")
    head = await create(index, add("a"), add("b", size=5), table=table)

    assert (head.id, head.name, head.location) == (table.id, table.name, table.location)
    assert (head.latest_version, head.published_version, head.latest_timestamp) == (0, 0, 1_000)
    assert (head.num_files, head.size_bytes) == (2, 15)
    assert (head.state, head.state_reason) == (TableState.ACTIVE, None)
    assert encode(head.protocol) == encode(PROTOCOL)
    assert head.metadata.configuration == METADATA.configuration
    assert await index.table(table.id) == head


async def test_within_its_creation_a_table_is_at_version_minus_1(index):
    async with index.creation_section(new_table()) as section:
        assert section.table.latest_version == section.table.published_version == -1
        assert section.table.protocol is section.table.metadata is None
        state = await section.state_at(-1)
        assert (state.version, state.protocol, state.metadata) == (-1, None, None)
        assert await section.winners(-1, -1) == ()


async def test_a_section_left_without_saving_changes_nothing(index):
    table = await create(index)
    async with index.commit_section(table.id) as section:
        await append(section, add("a"))
        await section.abort("tombstone")
        assert section.table.latest_version == 1
    assert await index.table(table.id) == table
    assert await index.transaction(table.id, "tombstone") is None

    unborn = new_table()
    async with index.creation_section(unborn):
        pass
    assert await index.table(unborn.id) is None


async def test_a_commit_comes_back_as_it_was_written(index):
    table = await create(index)
    commit = ratified(
        1,
        add("a"),
        transaction_id="id",
        operation="MERGE",
        operation_parameters={"predicate": '["x = \0"]', "zoo": 1, "ant": 10**30},
        operation_metrics={"numOutputRows": "3"},
        isolation_level=IsolationLevel.SNAPSHOT_ISOLATION,
        is_blind_append=False,
        read_version=0,
        rebased_over=3,
        engine_info=None,
        user_metadata="größer 🛩",
        tags={"a": None, "b": "1"},
        foreign=True,
    )
    async with index.commit_section(table.id) as section:
        await section.append(commit)
        assert await section.transaction("id") == commit.record
        await section.save()

    found = await index.transaction(table.id, "id")
    assert found == commit.record
    assert list(found.operation_parameters) == ["predicate", "zoo", "ant"]
    assert await index.commit(table.id, 1) == commit.record


async def test_a_foreign_commit_may_lack_everything(index):
    table = await create(index)
    bare = ratified(
        1,
        transaction_id=None,
        body_digest=None,
        operation=None,
        isolation_level=None,
        read_version=None,
        engine_info=None,
        foreign=True,
    )
    async with index.commit_section(table.id) as section:
        await section.append(bare)
        await section.append(replace(bare, record=replace(bare.record, version=2)))
        await section.save()
    assert await index.commit(table.id, 1) == bare.record


@pytest.mark.parametrize("transaction_id", ["x" * 5_000, "nul\0inside", "sha256:abc"])
async def test_any_text_is_a_transaction_id(index, transaction_id):
    table = await create(index)
    await land(index, table, transaction_id=transaction_id)
    found = await index.transaction(table.id, transaction_id)
    assert (found.version, found.transaction_id) == (1, transaction_id)
    assert await index.transaction(table.id, transaction_id + "x") is None


async def test_an_id_is_landed_aborted_or_unknown(index):
    table = await create(index)
    other = await create(index)
    async with index.commit_section(table.id) as section:
        landed = await append(section, add("a"))
        await section.abort("given up")
        await section.abort("given up")
        assert await section.transaction("given up") == Aborted("given up")
        await section.save()

    landed_id = landed.record.transaction_id
    assert await index.transaction(table.id, "given up") == Aborted("given up")
    assert await index.transaction(table.id, landed_id) == landed.record
    assert await index.transaction(table.id, "never heard of") is None
    assert await index.transaction(other.id, landed_id) is None
    async with index.commit_section(table.id) as section:
        with pytest.raises(ValueError, match="landed as version 1"):
            await section.abort(landed_id)


async def test_only_the_next_version_is_written(index):
    table = await create(index)
    async with index.commit_section(table.id) as section:
        for version in (0, 2):
            with pytest.raises(ValueError, match="does not follow 0"):
                await section.append(ratified(version))
        await append(section)
        await append(section)
        await section.save()
    assert (await index.table(table.id)).latest_version == 2


async def test_what_is_published_stays_a_prefix(index):
    plain = await create(index)
    async with index.commit_section(plain.id) as section:
        with pytest.raises(ValueError, match="plain table"):
            await append(section, published=False)
    managed = await create(index, table=new_table(catalog_managed=True))
    async with index.commit_section(managed.id) as section:
        with pytest.raises(ValueError, match="cannot be published while -1"):
            await append(section, published=True)


async def test_history_is_newest_first(index):
    table = await create(index)
    for _ in range(4):
        table = await land(index, table)

    async def versions(start, end, limit=10):
        found = await index.history(table.id, from_version=start, to_version=end, limit=limit)
        return [record.version for record in found]

    assert await versions(None, None) == [4, 3, 2, 1, 0]
    assert await versions(1, 3) == [3, 2, 1]
    assert await versions(2, None, limit=2) == [4, 3]
    assert await versions(None, 0) == [0]
    assert await versions(5, None) == []


async def test_the_state_of_each_version(index):
    table = await create(index)
    changed = changed_metadata(configuration={"a": "b"})
    upgraded = Protocol(min_reader_version=1, min_writer_version=3)
    table = await land(index, table, add("a"))
    table = await land(index, table, changed)
    table = await land(index, table, add("b"))
    table = await land(index, table, upgraded)

    async def state(version):
        found = await index.state_at(table.id, version)
        assert found.version == version
        return found.protocol.min_writer_version, found.metadata.configuration

    first = METADATA.configuration
    assert [await state(v) for v in range(5)] == [
        (2, first),
        (2, first),
        (2, {"a": "b"}),
        (2, {"a": "b"}),
        (3, {"a": "b"}),
    ]
    assert await index.state_at(table.id, 5) is None
    assert table.protocol.min_writer_version == 3
    assert table.metadata.raw == changed.raw
    async with index.commit_section(table.id) as section:
        assert await section.state_at(1) == await index.state_at(table.id, 1)
        assert await section.state_at(5) is None


async def test_winners_are_the_commits_themselves(index):
    table = await create(index)
    txn = Txn(app_id="stream", version=7)
    domain = DomainMetadata(domain="d", configuration="{}", removed=False)
    unknown = decode(b'{"newKind": {"a": 1.50}}')
    twice = add("a", size=11)
    # A remove of a file that is not live, and a re-add, are the winner's all the same.
    never = remove("never there", partitionValues={"day": None}, size=3)
    await land(index, table, add("a"), txn, domain, unknown)
    await land(index, table, twice, never)
    await land(index, table, changed_metadata(configuration={}), PROTOCOL)

    async with index.commit_section(table.id) as section:
        first, second, third = await section.winners(0, 3)
        assert await section.winners(3, 3) == ()
        assert [w.version for w in await section.winners(1, 2)] == [2]
        assert await section.winners(2, 4) is None
        assert await section.winners(-2, 0) is None

    assert (first.version, first.operation, first.is_blind_append) == (1, "WRITE", True)
    assert [encode(a) for a in first.adds] == [encode(add("a"))]
    assert [encode(t) for t in first.txns] == [encode(txn)]
    assert [encode(d) for d in first.domains] == [encode(domain)]
    assert [u.raw for u in first.unknown] == [b'{"newKind": {"a": 1.50}}']
    assert first.commit_info.timestamp == 1
    assert ([a.raw for a in second.adds], [r.raw for r in second.removes]) == (
        [twice.raw],
        [never.raw],
    )
    assert second.removes[0].partition_values == {"day": None}
    assert third.metadata.configuration == {}
    assert third.protocol.min_writer_version == 2


async def test_the_latest_transaction_of_an_application(index):
    table = await create(index)
    other = await create(index, Txn(app_id="stream", version=99))
    await land(index, table, Txn(app_id="stream", version=1), Txn(app_id="b", version=5))
    last = decode(b'{"txn": {"appId":"stream", "version":2, "lastUpdated":123, "x":1}}')
    await land(index, table, last)
    found = await index.app_transaction(table.id, "stream", known=ReplicatedHeads())
    assert (found.version, found.last_updated, found.raw) == (2, 123, last.raw)
    assert (await index.app_transaction(table.id, "b", known=ReplicatedHeads())).version == 5
    assert await index.app_transaction(table.id, "c", known=ReplicatedHeads()) is None
    assert (await index.app_transaction(other.id, "stream", known=ReplicatedHeads())).version == 99


async def test_a_quarantined_table_is_read_but_says_so(index):
    table = await create(index, add("a"))
    async with index.commit_section(table.id) as section:
        await section.quarantine("bytes\0differ")
        assert section.table.state is TableState.QUARANTINED
        await section.save()
    await quarantine(index, table, "a later reason")
    found = await index.table(table.id)
    assert (found.state, found.state_reason) == (TableState.QUARANTINED, "bytes\ufffddiffer")
    assert found.quarantine_cause is QuarantineCause.LOG
    assert found.num_files == 1


async def test_what_a_table_is_quarantined_for_is_on_its_row(index):
    """The first reason stays, but for that of a database that was set back."""
    table = await create(index, add("a"))
    for reason, cause, told in (
        ("first", QuarantineCause.LOG, "first"),
        ("set back", QuarantineCause.SET_BACK, "set back"),
        ("again", QuarantineCause.SET_BACK, "set back"),
        ("last", QuarantineCause.LOG, "set back"),
    ):
        await quarantine(index, table, reason, cause)
        found = await index.table(table.id)
        async with index.commit_group({table.id: ["an-id"]}, wait=True) as group:
            assert group.sections[table.id].table == found
        expected = QuarantineCause.LOG if told == "first" else QuarantineCause.SET_BACK
        assert (found.state_reason, found.quarantine_cause) == (told, expected)
    async with index.commit_section(table.id) as section:
        await section.release()
        assert (section.table.state, section.table.quarantine_cause) == (TableState.ACTIVE, None)
        await section.save()
    await quarantine(index, table, "anew")
    found = await index.table(table.id)
    assert (found.state_reason, found.quarantine_cause) == ("anew", QuarantineCause.LOG)


@pytest.mark.parametrize("table_id", [str(uuid.UUID(int=1)), "main.test.nowhere", "nul\0"])
async def test_a_table_that_is_not_there(index, table_id):
    with pytest.raises(NotFound) as missing:
        async with index.commit_section(table_id):
            pass
    assert missing.value.code is Code.TABLE_NOT_FOUND
    assert await index.commit(table_id, 0) is None
    assert await index.content(table_id, 0) is None
    assert await index.state_at(table_id, 0) is None
    assert await index.version_at(table_id, 0) is None
    assert await index.transaction(table_id, "x") is None
    assert await index.app_transaction(table_id, "x", known=ReplicatedHeads()) is None
    assert await index.forget(table_id, by=OPERATOR) is False
    with pytest.raises(NotFound):
        await anext(index.files(table_id, 0))


async def test_the_version_at_a_time(index):
    table = await create(index)
    for _ in range(2):
        table = await land(index, table)
    assert await index.version_at(table.id, 999) is None
    assert [await index.version_at(table.id, t) for t in (1_000, 1_001, 1_999)] == [0, 1, 2]
