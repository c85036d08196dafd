"""Large versions of a catalog-managed table are taken one at a time where its index is made anew,
or its log is made whole, and their digests are told in threads."""

import threading
from dataclasses import replace

import pytest

from tests.service.maintenance.test_verify import busy_table
from tidegate_service.core.catalog_managed.publish import publish_table
from tidegate_service.core.maintenance.rebuild import rebuild_table
from tidegate_service.core.maintenance.verify import verify_table
from tidegate_service.core.sharing import offload
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.limits import IndexLimits
from tidegate_service.index.locking.section import PostgresCommitSection
from tidegate_service.index.rows import stored_content
from tidegate_service.index.rows.stored_content import StoredContent

pytestmark = pytest.mark.anyio


@pytest.fixture
def digests(monkeypatch):
    """The threads in which digests of what is stored are told, from now on."""
    monkeypatch.setattr(stored_content, "LARGE_BYTES", 100)
    monkeypatch.setattr(offload, "HEAVY", 1)
    found = []
    told = StoredContent.sha256.fget

    def noting(content):
        found.append(threading.current_thread())
        return told(content)

    monkeypatch.setattr(StoredContent, "sha256", property(noting))
    return found


async def test_a_rebuild_reads_each_when_it_needs_it(world, engine, digests, monkeypatch):
    one_by_one = PostgresIndex(engine, limits=IndexLimits(kept_bytes=1))
    world = replace(world, context=replace(world.context, index=one_by_one))
    table = await busy_table(world, catalog_managed=True)
    asked = []
    kept = PostgresCommitSection.kept_unpublished

    async def noting(section, version):
        # None before it is the next one.
        assert version == section.table.latest_version + 1
        asked.append(await kept(section, version))
        return asked[-1]

    monkeypatch.setattr(PostgresCommitSection, "kept_unpublished", noting)
    rebuilt = await rebuild_table(world.context, table.id)
    assert (rebuilt.latest_version, rebuilt.published_version) == (4, -1)
    assert (rebuilt.num_files, rebuilt.size_bytes) == (table.num_files, table.size_bytes)
    *versions, none = asked
    assert none is None
    assert [type(content) for content in versions] == [StoredContent] * 5
    assert threading.main_thread() not in digests
    assert (await verify_table(world.context, table.id)).differences == ()


async def test_a_log_is_made_whole_again(world, digests):
    table = await busy_table(world, catalog_managed=True)
    await publish_table(world.context.index, world.context.storage, table)
    file = world.log_file(table, 1)
    ratified = file.read_bytes()
    file.unlink()
    await rebuild_table(world.context, table.id)
    assert file.read_bytes() == ratified
    assert digests
    assert threading.main_thread() not in digests
