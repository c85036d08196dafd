"""The index in memory in the place of the one in Postgres, for tests that say `index`.

Tests that ask Postgres itself for something, or look into how it is asked, are left out here.
"""

import asyncio
import time

import pytest

from tests.service.conftest import faults, made, world  # noqa: F401
from tests.service.log.watched.conftest import store, watched  # noqa: F401
from tests.simulation.ports.index import MemoryIndex
from tests.simulation.ports.network import NoNetwork
from tests.simulation.ports.server import Server

OF_POSTGRES = {"engine", "database_url", "postgres_server", "severed", "analyzed", "transactions"}

LEFT_OUT = {
    # They look into how Postgres is written to.
    "test_a_commit_that_is_not_appended_leaves_no_file",
    "test_the_index_is_written_while_files_are_put",
    # They scan or verify, which nothing that is simulated does.
    "test_a_rebuilt_table_is_the_same",
    "test_ids_outlive_the_versions_that_the_log_forgot",
    "test_a_file_behind_a_catalog_managed_table_is_no_version_of_it",
    "test_a_scan_of_a_version_that_a_rebuild_left_behind_does_not_end_early",
    "test_instances_that_catch_up_side_by_side_do_not_fight",
    "test_a_portion_that_another_one_wrote_is_not_written_again",
    "test_one_behind_the_end_is_never_taken_in",
    "test_one_of_the_next_version_is_never_taken_in",
    "test_what_a_publisher_wrote_all_the_same_is_not_taken_in",
}


@pytest.hookimpl(hookwrapper=True)
def pytest_collection_modifyitems(config, items):
    here = [item for item in items if "simulation/on_memory" in str(item.path)]
    out = [
        item
        for item in here
        if OF_POSTGRES & set(item.fixturenames) or item.originalname in LEFT_OUT
    ]
    if out:
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in out]
    yield


@pytest.fixture
def memory() -> Server:
    return Server(lambda: time.time_ns() // 1_000_000)


@pytest.fixture
def index(memory) -> MemoryIndex:
    return MemoryIndex(memory, NoNetwork())


@pytest.fixture
def other_index(memory) -> MemoryIndex:
    return MemoryIndex(memory, NoNetwork())


@pytest.fixture
def waiters(memory):
    async def wait(count: int) -> None:
        async with asyncio.timeout(30):
            while memory.waiting != count:
                await asyncio.sleep(0)

    return wait
