"""A domain that was removed is in the checkpoints of versions that had it."""

import json

import pyarrow.parquet as pq
import pytest
from sqlalchemy import text

from tests.builders.actions import domain
from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.upkeep.checkpointed import checkpointed, folder_of
from tests.service.world import World
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import Refused, StorageUnavailable
from tidegate_service.core.maintenance.rebuild import rebuild_table
from tidegate_service.core.ports.outcomes import Committed
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.limits import IndexLimits

pytestmark = pytest.mark.anyio

DOMAINS = {"delta.feature.domainMetadata": "supported"}
LATER = "applications or domains were written since version"


@pytest.fixture
async def table(world: World) -> TableRecord:
    return await world.create(properties=DOMAINS)


async def commit(world, table, *actions) -> None:
    version = (await get_table(world.context, table.id)).latest_version
    asked = proposal(*actions, read_version=version, operation="SET")
    assert isinstance(await propose(world.context, table.id, asked), Committed)


async def set_and_remove(world, table) -> None:
    """In versions 1 and 2."""
    await commit(world, table, domain("d", "one"))
    await commit(world, table, domain("d", removed=True))


async def run(engine, statement) -> None:
    async with engine.begin() as connection:
        await connection.execute(text(statement))


def written_by_others(world, table, version, *lines) -> None:
    """A version that is in the log before the index has it."""
    content = "".join(json.dumps(line) + "\n" for line in ({"commitInfo": {}}, *lines))
    world.log_file(table, version).write_text(content)


def line(name: str, configuration: str, *, removed: bool = False) -> dict[str, object]:
    body = {"domain": name, "configuration": configuration, "removed": removed}
    return {"domainMetadata": body}


async def domains_at(world, table, version) -> dict[str, str]:
    """What the checkpoint of the version has."""
    written = await checkpointed(world, table, version)
    assert written.version == version
    name = f"{version:020d}.checkpoint.parquet"
    rows = pq.read_table(folder_of(table) / "_delta_log" / name)["domainMetadata"]
    return {row["domain"]: row["configuration"] for row in rows.drop_null().to_pylist()}


async def test_it_is_there_until_it_was_removed(world, table):
    await commit(world, table, domain("d", "one"), domain("stays", "two"))
    await commit(world, table, add("a"))
    await commit(world, table, domain("d", removed=True))
    assert await domains_at(world, table, 3) == {"stays": "two"}
    assert await domains_at(world, table, 2) == {"d": "one", "stays": "two"}
    assert await domains_at(world, table, 1) == {"d": "one", "stays": "two"}
    with pytest.raises(Refused, match=LATER):
        await checkpointed(world, table, 0)


async def test_what_it_was_before_it_was_set_again_is_not_known(world, table):
    await commit(world, table, domain("d", "one"))
    await commit(world, table, domain("d", "two"))
    await commit(world, table, domain("d", removed=True))
    await commit(world, table, add("a"))
    assert await domains_at(world, table, 2) == {"d": "two"}
    with pytest.raises(Refused, match=LATER):
        await checkpointed(world, table, 1)


async def test_nor_before_it_was_removed_once_more(world, table):
    await set_and_remove(world, table)
    await commit(world, table, domain("d", "two"))
    await commit(world, table, domain("d", removed=True))
    assert await domains_at(world, table, 4) == {}
    assert await domains_at(world, table, 3) == {"d": "two"}
    for version in (0, 1, 2):
        with pytest.raises(Refused, match=LATER):
            await checkpointed(world, table, version)


async def test_what_is_removed_twice_ended_the_first_time(world, table):
    await set_and_remove(world, table)
    await commit(world, table, domain("d", removed=True))
    assert await domains_at(world, table, 1) == {"d": "one"}
    assert await domains_at(world, table, 2) == {}


@pytest.mark.parametrize("before", [[], [domain("d", "one")]])
async def test_versions_that_come_into_the_index_together(world, table, before):
    """Others have set a domain, and removed it, before the index has read either."""
    await commit(world, table, *before, domain("e", "one"))
    gone = [line("d", "", removed=True), line("e", "", removed=True)]
    written_by_others(world, table, 2, line("d", "two"), gone[1])
    written_by_others(world, table, 3, *gone)
    await commit(world, table, add("a"))
    assert await domains_at(world, table, 4) == {}
    assert await domains_at(world, table, 3) == {}
    assert await domains_at(world, table, 2) == {"d": "two"}
    with pytest.raises(Refused, match=LATER):
        await checkpointed(world, table, 1)


async def test_an_index_that_is_made_anew_knows_no_more_and_no_less(world, table, engine):
    await set_and_remove(world, table)
    # An index that was wrong.
    await run(engine, "UPDATE removed_domains SET removed_version = 9")
    await run(engine, "INSERT INTO removed_domains SELECT id, 'another', 0, '', 9 FROM tables")
    await rebuild_table(world.context, table.id)
    assert await domains_at(world, table, 1) == {"d": "one"}
    assert await domains_at(world, table, 2) == {}


async def test_before_an_upgrade_none_is_known(world, table, engine):
    """As the migration leaves it."""
    await set_and_remove(world, table)
    await run(engine, "DELETE FROM removed_domains")
    unknown = "SELECT id, 'sha256:', latest_version, '', latest_version FROM tables"
    await run(engine, f"INSERT INTO removed_domains {unknown}")
    await commit(world, table, add("a"))
    assert await domains_at(world, table, 2) == {}
    with pytest.raises(Refused, match=LATER):
        await checkpointed(world, table, 1)


async def test_a_checkpoint_that_lacks_it_is_not_the_versions(world, table, engine):
    """As a release that knew nothing of removed domains may have written."""
    await set_and_remove(world, table)
    await run(engine, "UPDATE removed_domains SET removed_version = 0")
    assert await domains_at(world, table, 1) == {}
    await run(engine, "UPDATE removed_domains SET removed_version = 2")
    with pytest.raises(StorageUnavailable, match="not the domainMetadata of 'd'"):
        await checkpointed(world, table, 1)
    # Of the version that removed it, the same checkpoint would be right.
    assert await domains_at(world, table, 2) == {}
    await checkpointed(world, table, 2)


async def test_pages_of_both_lack_none(world, engine):
    few = IndexLimits(small_actions_a_page=2, small_actions_page_bytes=100)
    world = world.over(PostgresIndex(engine, limits=few))
    table = await world.create(properties=DOMAINS)
    names = [f"d{number}" for number in range(7)]
    await commit(world, table, *(domain(name, "set") for name in names))
    await commit(world, table, *(domain(name, removed=True) for name in names[1::2]))
    assert await domains_at(world, table, 1) == dict.fromkeys(names, "set")
    assert await domains_at(world, table, 2) == dict.fromkeys(names[::2], "set")
