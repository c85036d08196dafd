"""Which files the log of a table that is registered may name."""

from dataclasses import replace

import pytest

from tests.builders.by_x import PROTOCOL, add, metadata, remove
from tests.builders.lines import vector
from tests.service.commit.committing import scanned
from tests.service.tables.delta_logs import DeltaLog, folded, lines_of, names
from tests.service.tables.test_register_broken import refusal
from tests.service.world import make_world
from tidegate_protocol.log.actions import Add
from tidegate_service.core.access.locations import LocationPolicy
from tidegate_service.core.errors import Refused
from tidegate_service.core.tables.register import RegisterTable, register_table
from tidegate_service.core.tables.scan import ScanRequest, scan
from tidegate_service.storage import ObjectStorage

pytestmark = pytest.mark.anyio


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
            if number == 1 and (not bad.startswith(("/", "file", "FILE", "s3", "hdfs"))):
                continue
            (snapshot,) = folded([(PROTOCOL, metadata(), file(bad))])
            log.commit(0, PROTOCOL, metadata(), file(bad))
            error = await refusal(world, log)
            assert error.code == "invalid-path"
            log.path(0).unlink()
            log.checkpoint(0, lines_of(snapshot))
            assert (await refusal(world, log)).code == "invalid-path"

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
