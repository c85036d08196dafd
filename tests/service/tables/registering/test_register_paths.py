"""Which files the log of a table that is registered may name."""

from dataclasses import replace

import pytest

from tests.builders.actions import decoded
from tests.builders.by_x import PROTOCOL, add, metadata, remove
from tests.builders.lines import cdc, vector
from tests.service.commit.committing import scanned
from tests.service.tables.delta_logs import DeltaLog, folded, lines_of, names
from tests.service.tables.registering.test_register_broken import refusal
from tests.service.world import make_world
from tidegate_protocol.log.actions import Add
from tidegate_service.core.access.locations import LocationPolicy
from tidegate_service.core.errors import Refused
from tidegate_service.core.log.loading.data_paths import DataPaths
from tidegate_service.core.tables.register import RegisterTable, register_table
from tidegate_service.core.tables.scan import ScanRequest, scan
from tidegate_service.storage import ObjectStorage

pytestmark = pytest.mark.anyio


UUID = "vBn[lx{q8@P<9BNH/isA"


def vector_at(path: str) -> Add:
    return add("a", deletionVector=vector(path, storageType="p"))


class TestPaths:
    ALLOWED = (
        "a",
        "x=1/b%20c%25",
        "deep/er/still.parquet",
        "./a",
        "a//b",
        "..a",
        "{table}/a",
        "{path}/a",
        "file:{path}/a",
        "{other}/shallow/clone.parquet",
        "{table}x/clone.parquet",
    )
    REFUSED = (
        "../a",
        "a/../../b",
        "%2e%2e/a",
        "a/%2E%2E/b",
        "/etc/passwd",
        "file:///etc/passwd",
        "file:/etc/passwd",
        "file://host{path}/a",
        "FILE:///etc/passwd",
        "s3://bucket/key",
        "s3a://bucket/key",
        "hdfs://node/a",
        "{other}x/a",
        "{other}",
        "{other}/t/_delta_log/x",
        "{table}/../a",
        "_delta_log/0.json",
        "_DELTA_LOG/x",
        "{table}/_delta_log/x",
        "%5fdelta_log/x",
        # Hadoop decodes escapes that are not UTF-8 all the same.
        "%FF/%2e%2e/%2e%2e/%2e%2e/secret/t/f.parquet",
        "%2Fwh/main/secret/t/%FF/%2e%2e/f.parquet",
        "{table}/%FF/%2e%2e/%2e%2e/secret/f.parquet",
    )

    def world(self, index, tmp_path):
        lake, other = tmp_path / "lake", tmp_path / "other"
        lake.mkdir()
        other.mkdir()
        storage = ObjectStorage(warehouse=lake.as_uri(), allowed_prefixes=[other.as_uri()])
        made = make_world(index, storage, lake.as_uri())
        policy = LocationPolicy(warehouse=lake.as_uri(), prefixes=(other.as_uri(),))
        return replace(made, context=replace(made.context, locations=policy))

    def filled(self, path: str, tmp_path) -> str:
        table = tmp_path / "lake" / "table"
        return path.format(table=table.as_uri(), path=table, other=(tmp_path / "other").as_uri())

    async def test_those_inside_the_table_or_an_allowed_prefix(self, index, tmp_path):
        world = self.world(index, tmp_path)
        log = DeltaLog(tmp_path / "lake" / "table")
        log.first(*(add(self.filled(path, tmp_path)) for path in self.ALLOWED))
        log.commit(1, vector_at(self.filled("{table}/vector.bin", tmp_path)))
        table, _ = await register_table(
            world.context, RegisterTable(name=next(names), location=log.location)
        )
        assert table.latest_version == 1

    @pytest.mark.parametrize("path", REFUSED)
    async def test_those_elsewhere(self, index, tmp_path, path):
        world = self.world(index, tmp_path)
        for number, file in enumerate([add, vector_at]):
            log = DeltaLog(tmp_path / "lake" / ("table" if number == 0 else "second"))
            bad = self.filled(path, tmp_path)
            (snapshot,) = folded([(PROTOCOL, metadata(), file(bad))])
            log.commit(0, PROTOCOL, metadata(), file(bad))
            error = await refusal(world, log)
            assert error.code == "invalid-path"
            log.path(0).unlink()
            log.checkpoint(0, lines_of(snapshot))
            assert (await refusal(world, log)).code == "invalid-path"

    @pytest.mark.parametrize(
        "fields",
        [
            {"name": f"../../secret/t/{UUID}"},
            {"name": f"/wh/secret/t/{UUID}", "offset": None},
            {"name": f"..{UUID}"},
            {"name": "a.parquet", "storageType": "p"},
            {"name": UUID, "storageType": "x"},
        ],
    )
    async def test_deletion_vectors_elsewhere(self, index, tmp_path, fields):
        world = self.world(index, tmp_path)
        log = DeltaLog(tmp_path / "lake" / "table")
        bad = add("a", deletionVector=vector(**fields))
        log.first(bad, add("b"))
        assert (await refusal(world, log)).code == "invalid-path"
        log.commit(1, remove("a", deletionVector=vector(**fields)))
        table, _ = await register_table(
            world.context, RegisterTable(name=next(names), location=log.location)
        )
        found = await scan(world.context, table.id, ScanRequest())
        assert [file.path for file in await scanned(found)] == ["b"]
        past = await scan(world.context, table.id, ScanRequest(version=0))
        with pytest.raises(Refused, match="which is not allowed"):
            await anext(past.files)

    @pytest.mark.parametrize("path", ["../a", "{table}/a", "%FF/%2e%2e/a", "_delta_log/x"])
    async def test_files_of_change_data_elsewhere(self, index, tmp_path, path):
        world = self.world(index, tmp_path)
        log = DeltaLog(tmp_path / "lake" / "table")
        log.first(add("a"))
        log.commit(1, decoded(cdc(self.filled(path, tmp_path), partitionValues={"x": "1"})))
        assert (await refusal(world, log)).code == "invalid-path"
        log.commit(1, decoded(cdc("_change_data/a%20b", partitionValues={"x": "1"})))
        table, _ = await register_table(
            world.context, RegisterTable(name=next(names), location=log.location)
        )
        assert table.latest_version == 1

    @pytest.mark.parametrize("path", ["../a", "/etc/passwd", "s3://bucket/key", "_delta_log/x"])
    async def test_a_version_that_named_one_is_not_scanned(self, index, tmp_path, path):
        world = self.world(index, tmp_path)
        log = DeltaLog(tmp_path / "lake" / "table")
        log.first(add(path), add("b"))
        log.commit(1, remove(path))
        table, _ = await register_table(
            world.context, RegisterTable(name=next(names), location=log.location)
        )
        assert table.num_files == 1
        found = await scan(world.context, table.id, ScanRequest())
        assert [file.path for file in await scanned(found)] == ["b"]
        past = await scan(world.context, table.id, ScanRequest(version=0))
        with pytest.raises(Refused, match="which is not allowed"):
            await anext(past.files)


def test_in_a_store_an_absolute_path_says_which_one():
    """Spark would look for `/lake/table/a` in the default file system of its session."""
    policy = LocationPolicy(warehouse="s3://bucket/lake")
    paths = DataPaths(location="s3://bucket/lake/table", policy=policy, reader=None)
    paths.check(add("s3a://bucket/lake/table/a"))
    with pytest.raises(Refused, match="does not say in which store it lies"):
        paths.check(add("/lake/table/a"))
