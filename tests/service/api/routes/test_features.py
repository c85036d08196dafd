"""Tables with optional features over the whole commit path, both kinds of table."""

import json

import deltalake
import pytest

from tests.builders.by_x import add, remove
from tests.builders.lines import vector, wide
from tests.builders.proposals import proposal
from tests.service.commit.committing import scanned
from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.codec import decode
from tidegate_protocol.proposal.transaction import Conflict, Invalid
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.ports.outcomes import Committed
from tidegate_service.core.tables.register import RegisterTable, register_table
from tidegate_service.core.tables.scan import ScanRequest, scan

pytestmark = pytest.mark.anyio

BOTH = pytest.mark.parametrize("catalog_managed", [False, True], ids=["plain", "catalog-managed"])
ROW_TRACKING = {"delta.feature.rowTracking": "supported"}


def rows(count):
    return json.dumps({"numRecords": count})


def action(kind, **body):
    return decode(json.dumps({kind: body}).encode())


async def files(world, table):
    """Path to the live add."""
    version = (await world.context.index.table(table.id)).latest_version
    return {
        file.path: file
        async for batch in world.context.index.files(table.id, version)
        for file in batch
    }


async def metadata_with(world, table, **properties):
    """The table's metaData action with more properties."""
    body = json.loads((await world.context.index.table(table.id)).metadata.raw)["metaData"]
    return action("metaData", **{**body, "configuration": {**body["configuration"], **properties}})


class TestCollations:
    async def test_a_table_of_another_engine_is_carried(self, world, tmp_path):
        """Its name is a preview's, and nothing of it is for readers to know."""
        folder = tmp_path / "lake" / "collated"
        (folder / "_delta_log").mkdir(parents=True)
        collated = {"__COLLATIONS": {"s": "icu.UNICODE"}}
        fields = [
            {"name": "id", "type": "integer", "nullable": True, "metadata": {}},
            {"name": "s", "type": "string", "nullable": True, "metadata": collated},
        ]
        metadata = {
            "id": "0eb3e007-b3cc-40e4-bca1-a5970d86b5a6",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": fields}),
            "partitionColumns": [],
            "configuration": {},
            "createdTime": 1773779518731,
        }
        names = ["domainMetadata", "collations-preview", "appendOnly", "invariants"]
        protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": names}
        lines = [{"metaData": metadata}, {"protocol": protocol}]
        log = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / "_delta_log" / f"{0:020}.json").write_text(log)

        request = RegisterTable(name="main.lake.collated", location=f"file://{folder}")
        table, _ = await register_table(world.context, request)
        stats = json.dumps({"numRecords": 1, "minValues": {"s": "b"}, "maxValues": {"s": "b"}})
        file = action(
            "add",
            path="f",
            partitionValues={},
            size=1,
            modificationTime=1,
            dataChange=True,
            stats=stats,
        )
        assert isinstance(await propose(world.context, table.id, proposal(file)), Committed)
        changed = proposal(
            await metadata_with(world, table, owner="me"),
            read_version=1,
            operation="SET TBLPROPERTIES",
        )
        assert isinstance(await propose(world.context, table.id, changed), Committed)
        # What sorts otherwise is not skipped.
        read = await scan(world.context, table.id, ScanRequest(predicates=("s = 'B'",)))
        assert [found.path for found in await scanned(read)] == ["f"]
        assert read.protocol.writer_features == frozenset(names)


class TestRowTracking:
    @BOTH
    async def test_ids_are_given_out_and_moved(self, world, catalog_managed):
        table = await world.create(catalog_managed=catalog_managed, properties=ROW_TRACKING)
        first = proposal(add("a", stats=rows(4)), read_version=0)
        mine = proposal(
            add("b", stats=rows(2), baseRowId=0, defaultRowCommitVersion=1), read_version=0
        )
        await propose(world.context, table.id, first)
        landed = await propose(world.context, table.id, mine)
        assert isinstance(landed, Committed)
        found = {
            path: (file.base_row_id, file.default_row_commit_version)
            for path, file in (await files(world, table)).items()
        }
        assert found == {"a": (0, 1), "b": (4, 2)}

    @BOTH
    async def test_ids_of_files_that_were_there_stay(self, world, catalog_managed):
        table = await world.create(catalog_managed=catalog_managed, properties=ROW_TRACKING)
        await propose(world.context, table.id, proposal(add("a", stats=rows(4))))
        await propose(world.context, table.id, proposal(add("w", stats=rows(9))))
        again = add("a", stats=rows(4), baseRowId=0, defaultRowCommitVersion=1, dataChange=False)
        landed = await propose(
            world.context, table.id, proposal(again, read_version=1, operation="COMPUTE STATS")
        )
        assert isinstance(landed, Committed)
        found = {path: file.base_row_id for path, file in (await files(world, table)).items()}
        assert found == {"a": 0, "w": 4}

    @BOTH
    async def test_every_file_needs_ids_before_it_is_on(self, world, catalog_managed):
        table = await world.create(catalog_managed=catalog_managed)
        await propose(world.context, table.id, proposal(add("a"), add("b")))
        on = await metadata_with(world, table, **{"delta.enableRowTracking": "true"})
        early = await propose(
            world.context, table.id, proposal(on, read_version=1, operation="SET TBLPROPERTIES")
        )
        assert isinstance(early, Invalid)
        assert early.path == "a"
        again = [add(path, dataChange=False) for path in ("a", "b")]
        landed = await propose(
            world.context,
            table.id,
            proposal(on, *again, read_version=1, operation="SET TBLPROPERTIES"),
        )
        assert isinstance(landed, Committed)
        assert {file.base_row_id for file in (await files(world, table)).values()} == {0, 1}

    async def test_the_log_is_one_that_others_read(self, world):
        table = await world.create(properties={**ROW_TRACKING, "delta.enableRowTracking": "true"})
        await propose(world.context, table.id, proposal(add("a", stats=rows(4)), add("b")))
        other = deltalake.DeltaTable(table.location.removeprefix("file://"))
        assert (other.version(), len(other.file_uris())) == (1, 2)
        written = world.actions_of(table, 1)
        assert written[0]["commitInfo"]["tags"] == {"delta.rowTracking.preserved": "true"}
        assert written[1]["domainMetadata"]["domain"] == "delta.rowTracking"
        assert json.loads(written[1]["domainMetadata"]["configuration"]) == {
            "rowIdHighWaterMark": 4
        }


class TestColumnMapping:
    @BOTH
    async def test_a_new_table_gets_its_names_from_the_service(self, world, catalog_managed):
        table = await world.create(
            catalog_managed=catalog_managed, properties={"delta.columnMapping.mode": "name"}
        )
        head = await world.context.index.table(table.id)
        fields = json.loads(head.metadata.schema_string)["fields"]
        ids = [field["metadata"]["delta.columnMapping.id"] for field in fields]
        assert ids == list(range(1, len(fields) + 1))
        assert head.metadata.configuration["delta.columnMapping.maxColumnId"] == str(len(fields))
        names = {field["metadata"]["delta.columnMapping.physicalName"] for field in fields}
        assert len(names) == len(fields)
        assert all(name.startswith("col-") for name in names)
        assert head.protocol.min_reader_version >= 2

    async def test_scans_go_by_physical_names(self, world):
        table = await world.create(properties={"delta.columnMapping.mode": "name"})
        head = await world.context.index.table(table.id)
        x, v = (
            field["metadata"]["delta.columnMapping.physicalName"]
            for field in json.loads(head.metadata.schema_string)["fields"]
        )
        files = [
            add(
                path,
                partitionValues={x: path},
                stats=json.dumps(
                    {"numRecords": 1, "minValues": {v: value}, "maxValues": {v: value}}
                ),
            )
            for path, value in (("1", "a"), ("2", "b"))
        ]
        by_display_names = await propose(world.context, table.id, proposal(add("z")))
        assert isinstance(by_display_names, Invalid)
        assert by_display_names.code is Code.PARTITION_MISMATCH
        assert isinstance(await propose(world.context, table.id, proposal(*files)), Committed)
        for predicate, expected in (
            ("x = 2", ["2"]),
            ("v = 'a'", ["1"]),
            ("x = 2 AND v = 'a'", []),
        ):
            request = ScanRequest(predicates=(predicate,), columns=("X",))
            found = await scan(world.context, table.id, request)
            assert [f.path for f in await scanned(found)] == expected


class TestDropFeature:
    @BOTH
    async def test_files_are_looked_at(self, world, catalog_managed):
        table = await world.create(
            catalog_managed=catalog_managed, properties={"delta.enableDeletionVectors": "true"}
        )
        await propose(
            world.context, table.id, proposal(add("a", deletionVector=vector(), stats=wide(3)))
        )
        off = await metadata_with(world, table, **{"delta.enableDeletionVectors": "false"})
        await propose(
            world.context, table.id, proposal(off, read_version=1, operation="SET TBLPROPERTIES")
        )
        head = await world.context.index.table(table.id)
        body = json.loads(head.protocol.raw)["protocol"]
        for kind in ("readerFeatures", "writerFeatures"):
            body[kind] = [name for name in body[kind] if name != "deletionVectors"]
        lowered = action("protocol", **body)
        outcome = await propose(
            world.context, table.id, proposal(lowered, read_version=2, operation="DROP FEATURE")
        )
        assert isinstance(outcome, Invalid)
        assert outcome.path == "a"
        await propose(
            world.context,
            table.id,
            proposal(
                remove("a", deletionVector=vector()),
                read_version=2,
                operation="DELETE",
            ),
        )
        dropped = await propose(
            world.context, table.id, proposal(lowered, read_version=3, operation="DROP FEATURE")
        )
        assert isinstance(dropped, Committed)
        late = await propose(world.context, table.id, proposal(add("z"), read_version=3))
        assert isinstance(late, Conflict)
        assert late.code is Code.PROTOCOL_CHANGED
