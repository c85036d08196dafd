"""VACUUM: what goes, what stays, and what the log and the audit trail say of it."""

import asyncio
from dataclasses import replace

import psycopg
import pytest
from deltalake import DeltaTable

from tests.builders.by_x import add, add_of_values, remove
from tests.service.log.foreign.foreign import date_file, foreign_commit
from tests.service.vacuum.vacuuming import (
    AT_ONCE,
    NOW_MS,
    ended,
    folder_of,
    land,
    left,
    named,
    plant,
    vacuumed,
)
from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.actions import DeletionVector
from tidegate_service.core.errors import Refused, StorageUnavailable, TableQuarantined
from tidegate_service.core.ports.store.data_files import DataFile
from tidegate_service.core.vacuum.begin import begin_vacuum
from tidegate_service.core.vacuum.inventory import Inventory
from tidegate_service.core.vacuum.request import VacuumRequest
from tidegate_service.core.vacuum.vacuum import Stage
from tidegate_service.storage.local.data_files import LocalDataFiles

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[False, True], ids=["plain", "catalog-managed"])
async def table(world, request):
    return await world.create(catalog_managed=request.param)


async def test_what_no_version_within_the_retention_names_goes(world, table):
    plant(table, "live", "x=1/live", "removed", "orphan", "x=1/orphan", "_hidden", "_change_data/c")
    await land(world, table, add("live"), add("x=1/live"), add("removed"))
    await land(world, table, remove("removed"))
    assert (await ended(world, table)).deleted == 4
    assert left(table) == {"live", "x=1/live", "_hidden"}


async def test_what_was_removed_within_the_retention_stays(world, table):
    plant(table, "removed", "orphan")
    await land(world, table, add("removed"))
    await land(world, table, remove("removed"))
    await ended(world, table, VacuumRequest())
    assert left(table) == {"removed"}


async def test_what_others_removed_stays_however_early_they_date_it(world, database_url):
    table = await world.create()
    paths = ("removed", "long-gone")
    plant(table, *paths)
    days_ago = NOW_MS - 10 * 24 * 3_600_000
    with psycopg.connect(database_url) as connection:
        for column in ("commits SET timestamp", "tables SET latest_timestamp"):
            connection.execute(f"UPDATE {column} = {days_ago - 1_000}")
    foreign_commit(
        world,
        table,
        1,
        *({"add": foreign_add(path)} for path in paths),
    )
    removed = {"dataChange": True, "partitionValues": {"x": "1"}, "size": 5}
    foreign_commit(
        world,
        table,
        2,
        {"remove": {"path": "removed", "deletionTimestamp": NOW_MS, **removed}},
        {"remove": {"path": "long-gone", "deletionTimestamp": days_ago, **removed}},
    )
    for version in (1, 2):
        date_file(world, table, version, days_ago)
    await ended(world, table, VacuumRequest())
    assert left(table) == {"removed"}


async def test_files_that_a_writer_may_yet_propose_stay(world, table):
    plant(table, "young", age_s=world.context.long_deadline_s - 60)
    plant(table, "old", age_s=world.context.long_deadline_s + 60)
    assert await named(world, table) == {"old"}
    week = 7 * 24 * 3600
    plant(table, "within", age_s=week + 60)
    plant(table, "behind", age_s=week + world.context.long_deadline_s + 60)
    assert await named(world, table, VacuumRequest()) == {"behind"}


async def test_a_dry_run_names_them_and_does_nothing(world, table):
    plant(table, "orphan", "x=1/ü %", "live")
    head = await land(world, table, add("live"))
    last = await ended(world, table, replace(AT_ONCE, dry_run=True))
    assert (last.listed, last.found, last.found_bytes, last.deleted) == (3, 2, 10, 0)
    assert await named(world, table) == {"orphan", "x=1/ü %"}
    assert left(table) == {"orphan", "x=1/ü %", "live"}
    assert (await world.context.index.table(table.id)).latest_version == head.latest_version


async def test_the_log_says_it_as_delta_does(world):
    table = await world.create()
    plant(table, "orphan")
    last = await ended(world, table)
    assert last.version == 2
    start, end = (world.actions_of(table, version)[0]["commitInfo"] for version in (1, 2))
    assert start["operation"] == "VACUUM START"
    assert start["operationParameters"] == {
        "retentionCheckEnabled": "false",
        "defaultRetentionMillis": "604800000",
        "specifiedRetentionMillis": "0",
    }
    assert start["operationMetrics"] == {"numFilesToDelete": "1", "sizeOfDataToDelete": "5"}
    assert end["operation"] == "VACUUM END"
    assert end["operationParameters"] == {"status": "COMPLETED"}
    assert end["operationMetrics"] == {"numDeletedFiles": "1", "numVacuumedDirectories": "0"}
    assert DeltaTable(str(folder_of(table))).version() == 2


async def test_the_audit_trail_says_who_did_it(world, table, database_url):
    await ended(world, table)
    with psycopg.connect(database_url) as connection:
        query = "SELECT principal, version FROM audit WHERE deed = 'vacuum'"
        assert connection.execute(query).fetchall() == [("anonymous", 1)]


async def test_a_shorter_retention_has_to_be_meant(world):
    table = await world.create(
        properties={"delta.deletedFileRetentionDuration": "interval 2 days 3 hours"}
    )
    own_ms = 51 * 3_600_000
    with pytest.raises(Refused, match=f"shorter than the {own_ms} ms") as refused:
        await begin_vacuum(world.context, table.id, VacuumRequest(retain_ms=own_ms - 1))
    assert refused.value.code is Code.INVALID_REQUEST
    vacuum = await begin_vacuum(world.context, table.id, VacuumRequest(retain_ms=own_ms))
    assert vacuum.horizon.retain_ms == own_ms


@pytest.mark.parametrize("text", ["interval +90 days", "12 months", "interval 30.5 days", "P90D"])
async def test_a_retention_that_is_not_understood(world, text):
    table = await world.create()
    set_by_others(world, table, {"delta.deletedFileRetentionDuration": text})
    with pytest.raises(Refused, match="not understood") as refused:
        await begin_vacuum(world.context, table.id, VacuumRequest())
    assert refused.value.code is Code.INVALID_REQUEST
    weeks_ms = 14 * 24 * 3_600_000
    vacuum = await begin_vacuum(world.context, table.id, VacuumRequest(retain_ms=weeks_ms))
    assert vacuum.horizon.retain_ms == weeks_ms


async def test_a_retention_that_others_have_just_set(world):
    table = await world.create()
    set_by_others(world, table, {"delta.deletedFileRetentionDuration": "interval 90 days"})
    asked = VacuumRequest(retain_ms=8 * 24 * 3_600_000)
    with pytest.raises(Refused, match="shorter than the 7776000000 ms"):
        await begin_vacuum(world.context, table.id, asked)
    vacuum = await begin_vacuum(world.context, table.id, VacuumRequest())
    assert vacuum.horizon.retain_ms == 90 * 24 * 3_600_000


async def test_files_of_deletion_vectors_stay_with_their_rows(world):
    table = await world.create(properties={"delta.enableDeletionVectors": "true"})
    # The example of the protocol's document.
    vector = DeletionVector(
        storage_type="u",
        path_or_inline_dv="ab^-aqEH.-t@S}K{vb[*k^",
        offset=4,
        size_in_bytes=40,
        cardinality=6,
    )
    file = "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    other = "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff62.bin"
    plant(table, file, other, "part")
    stats = '{"numRecords":9,"tightBounds":false}'
    await land(
        world, table, add_of_values("part", deletion_vector=vector, stats=stats), operation="DELETE"
    )
    await ended(world, table)
    assert left(table) == {file, "part"}


async def test_a_path_that_is_spelled_in_another_way_is_the_same_file(world):
    table = await world.create()
    folder = folder_of(table)
    spelled = ["a//b", "./c", "d/./e", "f%20g", f"{folder}/h", f"file:{folder}/i"]
    foreign_commit(world, table, 1, *({"add": foreign_add(path)} for path in spelled))
    kept = {"a/b", "c", "d/e", "f g", "h", "i"}
    plant(table, *kept, "f%20g", "z")
    assert await named(world, table) == {"f%20g", "z"}
    await ended(world, table)
    assert left(table) == kept


async def test_what_others_have_committed_is_read_first(world):
    table = await world.create()
    plant(table, "theirs", "orphan")
    foreign_commit(world, table, 1, {"add": foreign_add("theirs")})
    await ended(world, table)
    assert left(table) == {"theirs"}


async def test_what_lands_between_listing_and_deleting_stays(world, table):
    plant(table, "orphan", "late")
    vacuum = await begin_vacuum(world.context, table.id, AT_ONCE)
    async for now in vacuum.progress():
        if now.stage is Stage.DELETING and now.deleted == 0:
            await land(world, table, add("late"))
    assert "late" in left(table)


async def test_a_clone_keeps_the_files_that_it_names(world):
    table, clone = await world.create(), await world.create()
    plant(table, "live", "cloned", "x=1/cloned", "orphan")
    await land(world, table, add("live"))
    paths = [f"{folder_of(table)}/cloned", f"file://{folder_of(table)}/x=1/cloned"]
    foreign_commit(world, clone, 1, *({"add": foreign_add(path)} for path in paths))
    await ended(world, clone)
    said = await vacuumed(world, table)
    assert [clone.name in warning for now in said for warning in now.warnings] == [True]
    assert said[-1].stage is Stage.ENDED
    assert left(table) == {"live", "cloned", "x=1/cloned"}


@pytest.mark.parametrize(
    "properties",
    [
        {"delta.universalFormat.enabledFormats": "hudi,iceberg"},
        {"delta.enableIcebergWriterCompatV1": "true"},
    ],
)
async def test_metadata_of_iceberg_stays(world, properties):
    table = await world.create()
    paths = ("metadata/v1.metadata.json", "x=1/metadata/snap.avro", "orphan")
    plant(table, *paths)
    assert await named(world, table) == set(paths)
    set_by_others(world, table, properties)
    folder = str(folder_of(table))
    inventory = Inventory(who=None)
    inventory.add([DataFile(path=f"{folder}/{path}", size=5, modified_ms=1) for path in paths])
    assert await named(world, table, replace(AT_ONCE, inventory=inventory)) == {"orphan"}
    await ended(world, table)
    assert left(table) == set(paths[:2])


async def test_a_table_that_is_closed_is_left_alone(world, table):
    plant(table, "orphan")
    async with world.context.index.commit_section(table.id) as section:
        await section.quarantine("of a test")
        await section.save()
    with pytest.raises(TableQuarantined):
        await begin_vacuum(world.context, table.id, AT_ONCE)


async def test_one_that_is_closed_meanwhile_ends_it(world, table):
    plant(table, "orphan")
    vacuum = await begin_vacuum(world.context, table.id, AT_ONCE)
    async with world.context.index.commit_section(table.id) as section:
        await section.quarantine("of a test")
        await section.save()
    said = [now async for now in vacuum.progress()]
    assert said[-1].stage is Stage.FAILED
    assert left(table) == {"orphan"}


async def test_a_store_that_refuses_to_delete_is_told(world, monkeypatch):
    table = await world.create()
    plant(table, "orphan")

    async def refuse(self, paths):
        raise StorageUnavailable("the object store could not delete: it answered 403")

    monkeypatch.setattr(LocalDataFiles, "delete", refuse)
    last = (await vacuumed(world, table))[-1]
    assert (last.stage, last.error.detail[-3:]) == (Stage.FAILED, "403")
    info = world.actions_of(table, 2)[0]["commitInfo"]
    assert info["operationParameters"] == {"status": "FAILED"}
    monkeypatch.undo()
    assert (await ended(world, table)).deleted == 1


async def test_two_at_once_do_no_harm(world, table):
    plant(table, "live", *(f"x={n % 3}/{n}" for n in range(2_500)))
    await land(world, table, add("live"))
    await asyncio.gather(ended(world, table), ended(world, table))
    assert left(table) == {"live"}


async def test_an_index_that_begins_within_the_retention_does_not_know_enough(
    world, table, database_url
):
    await land(world, table, add("a"))
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE tables SET first_version = 1")
    with pytest.raises(Refused, match="begins at version 1, within the retention"):
        await begin_vacuum(world.context, table.id, VacuumRequest())
    await begin_vacuum(world.context, table.id, AT_ONCE)


def set_by_others(world, table, properties):
    """Another writer's commit of them, which is not read in."""
    [metadata] = [line["metaData"] for line in world.actions_of(table, 0) if "metaData" in line]
    metadata["configuration"] |= properties
    foreign_commit(world, table, 1, {"metaData": metadata})


def foreign_add(path):
    return {
        "path": path,
        "partitionValues": {"x": "1"},
        "size": 5,
        "modificationTime": 1,
        "dataChange": True,
    }
