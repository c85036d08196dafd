"""Files outside of a table's folder, as a shallow clone names them."""

from dataclasses import replace

import pytest

from tests.builders.by_x import add, remove
from tests.builders.lines import vector
from tests.builders.proposals import proposal
from tests.service.commit.committing import scanned
from tidegate_protocol.base.problems import Code
from tidegate_protocol.proposal.transaction import Invalid
from tidegate_service.core.access.roles import Caller, Grant, Principal, Role
from tidegate_service.core.commit.propose import conflict_check, propose
from tidegate_service.core.errors import Forbidden, Refused
from tidegate_service.core.ports.outcomes import Committed
from tidegate_service.core.tables.create import CreateTable, create_table
from tidegate_service.core.tables.scan import ScanRequest, scan

pytestmark = pytest.mark.anyio


@pytest.fixture
async def source(world):
    return await world.create()


@pytest.fixture(params=[False, True], ids=["plain", "catalog-managed"])
async def clone(world, request):
    properties = {"delta.enableDeletionVectors": "true"}
    return await world.create(catalog_managed=request.param, properties=properties)


def called_by(world, *grants: Grant):
    return world.context.called_by(Caller(principal=Principal(name="somebody", grants=grants)))


async def test_they_are_added_read_marked_and_removed(world, source, clone):
    folder = source.location.removeprefix("file://")
    first = await propose(world.context, clone.id, proposal(add(f"file:{folder}/a")))
    assert isinstance(first, Committed)
    # Another spelling of the path is the same file.
    marks = vector(f"{source.location}/v.bin", storageType="p")
    stats = '{"numRecords":1,"tightBounds":false}'
    marked = add(f"{source.location}/a", deletionVector=marks, stats=stats)
    change = proposal(remove(f"{folder}/a"), marked, read_version=1, whole_table=True)
    assert isinstance(await propose(world.context, clone.id, change), Committed)
    (found,) = await scanned(await scan(world.context, clone.id, ScanRequest()))
    assert found.path == f"{source.location}/a"
    assert found.deletion_vector is not None
    gone = remove(f"{folder}/a", deletionVector=marks)
    last = await propose(world.context, clone.id, proposal(gone, read_version=2, whole_table=True))
    assert isinstance(last, Committed)
    assert await scanned(await scan(world.context, clone.id, ScanRequest())) == []


async def test_a_file_is_added_once_however_it_is_spelled(world, source):
    twice = proposal(add(f"{source.location}/a"), add(f"file:{source.location[7:]}/a"))
    refused = await propose(world.context, source.id, twice)
    assert isinstance(refused, Invalid)
    assert refused.code == Code.DUPLICATE_ACTION


@pytest.mark.parametrize("path", ["file:///elsewhere/a", "/elsewhere/a", "s3://bucket/a"])
async def test_no_other_places_are_named(world, source, path):
    vectors = add("b", deletionVector=vector(path, storageType="p"))
    for action in (add(path), remove(path), vectors):
        asked = proposal(add("a"), action, read_version=0)
        for refused in (
            await conflict_check(world.context, source.id, asked),
            await propose(world.context, source.id, asked),
        ):
            assert isinstance(refused, Invalid)
            assert (refused.code, refused.action_index) == (Code.INVALID_PATH, 1)
    with pytest.raises(Refused, match=r"outside the table, the warehouse .*allowed_locations"):
        await world.create(actions=(add(path),))


async def test_who_adds_one_has_to_be_a_reader_there(world, source, clone):
    path = f"{source.location}/a"
    writer = Grant(Role.WRITER, clone.name)
    asked = proposal(add(path))
    with pytest.raises(Forbidden, match=f"is no reader of {source.name}"):
        await propose(called_by(world, writer), clone.id, asked)
    # It says nothing of what somebody else sends.
    both = called_by(world, writer, Grant(Role.READER, source.name))
    assert isinstance(await propose(both, clone.id, asked), Committed)
    gone = proposal(remove(path), read_version=1, whole_table=True)
    assert isinstance(await propose(called_by(world, writer), clone.id, gone), Committed)


async def test_a_creation_says_what_made_it(world, source):
    request = CreateTable(
        name=f"{source.name}_clone",
        schema=source.metadata.schema_string,
        partition_columns=("x",),
        actions=(add(f"{source.location}/a"),),
        operation="CLONE",
        operation_parameters={"source": source.name, "sourceVersion": 0},
        operation_metrics={"sourceNumOfFiles": "1"},
    )
    table = await create_table(world.context, request)
    (info, *_) = world.actions_of(table, 0)
    told = info["commitInfo"]
    assert told["operation"] == "CLONE"
    assert told["operationParameters"] == {"source": source.name, "sourceVersion": "0"}
    assert told["operationMetrics"] == {"sourceNumOfFiles": "1"}
    other = replace(request, name=f"{source.name}_other")
    with pytest.raises(Forbidden):
        await create_table(called_by(world, Grant(Role.ADMIN, other.name)), other)
