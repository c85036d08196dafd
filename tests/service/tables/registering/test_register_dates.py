"""Versions of a registered log that are each dated before the one before them."""

import json

import pytest

from tests.builders.by_x import add
from tests.service.tables.delta_logs import DeltaLog
from tests.service.world import make_world
from tidegate_protocol.log.codec import decode
from tidegate_service.core.tables.register import RegisterTable, register_table
from tidegate_service.index.locking.section import PostgresCommitSection
from tidegate_service.storage import ObjectStorage

pytestmark = pytest.mark.anyio

LAST = 7
FIRST_MS = 500_000


def as_if_ours(version):
    """What this service would have written as the version, a millisecond before the last one's."""
    info = {
        "txnId": str(version),
        "timestamp": FIRST_MS - version,
        "tidegate": {"bodyDigest": "0" * 64},
    }
    return decode(json.dumps({"commitInfo": info}).encode())


async def test_they_are_dated_together(index, tmp_path, monkeypatch):
    """One by one, each would have all before it written anew."""
    dated = []
    date_in_order = PostgresCommitSection.date_in_order

    async def noting(section):
        dated.append(section.table.latest_version)
        await date_in_order(section)

    monkeypatch.setattr(PostgresCommitSection, "date_in_order", noting)
    monkeypatch.delattr(PostgresCommitSection, "date_back")
    log = DeltaLog(tmp_path / "table")
    log.first(at=900_000)
    for version in range(1, LAST + 1):
        log.commit(version, add(f"f{version}"), info=as_if_ours(version))
    world = make_world(index, ObjectStorage(warehouse=tmp_path.as_uri()), tmp_path.as_uri())
    table, _ = await register_table(
        world.context, RegisterTable(name="main.test.dated", location=log.location)
    )
    commits = await index.history(table.id, from_version=None, to_version=None, limit=100)
    last_ms = FIRST_MS - LAST
    assert [commit.timestamp for commit in commits] == list(range(last_ms, last_ms - 8, -1))
    assert table.latest_timestamp == last_ms
    assert dated == [LAST]
