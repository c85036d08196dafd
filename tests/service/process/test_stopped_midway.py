"""An instance that is stopped in the middle of what it sends to Postgres.

The server has executed a statement that locks the table's row, and waits for the rest of the
pipeline: to it the session is at work. Nobody else may wait for that for longer than
`docs/operations.md` says.
"""

import asyncio
import itertools
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.servers.postgres import cloned
from tests.service.instances import instances
from tests.service.process.killed.crashing import Pair, check_log, landed, new_body
from tests.service.process.severing import Cut, Severing, severing
from tidegate_service.index.embedded.server import EmbeddedPostgres
from tidegate_service.index.locking.groups import LOCK
from tidegate_service.settings import Settings

BOUND_S = 30.0
"""As documented, with the request's way and the last wait for the lock."""
HOLDING = """
    SELECT state, wait_event FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'tidegate' AND state = 'active'
        AND wait_event_type = 'Client'
"""


@contextmanager
def severed(url: str, folder: Path) -> Iterator[tuple[str, Severing]]:
    """`severing` in a thread of its own, for tests that wait."""
    started: list[tuple[str, Severing]] = []
    ready, loops = threading.Event(), list[tuple[asyncio.AbstractEventLoop, asyncio.Event]]()

    async def pass_on() -> None:
        over = asyncio.Event()
        async with severing(url, folder) as made:
            started.append(made)
            loops.append((asyncio.get_running_loop(), over))
            ready.set()
            await over.wait()

    thread = threading.Thread(target=lambda: asyncio.run(pass_on()))
    thread.start()
    try:
        assert ready.wait(30)
        yield started[0]
    finally:
        for loop, over in loops:
            loop.call_soon_threadsafe(over.set)
        thread.join()


@pytest.fixture
def url(postgres_server: EmbeddedPostgres, migrated_template: str) -> Iterator[str]:
    with cloned(postgres_server.url, migrated_template) as url:
        yield url


def test_an_instance_that_is_stopped_within_a_pipeline_holds_nobody_for_long(url, tmp_path):
    with (
        tempfile.TemporaryDirectory(prefix="tidegate-", dir="/tmp") as folder,
        severed(url, Path(folder)) as (through, between),
    ):
        settings = {"data_dir": tmp_path, "port": 0, "log_level": "error"}
        with (
            instances(
                Settings(database_url=through, **settings), Settings(database_url=url, **settings)
            ) as (victim, survivor),
            ThreadPoolExecutor(1) as sending,
        ):
            two = Pair(victim=victim, survivor=survivor, folder=tmp_path, database_url=url)
            table = two.create(catalog_managed=False)
            body = new_body()
            between.watch(LOCK.name, Cut.WITHIN_ITS_PIPELINE)
            answer = sending.submit(table.propose, victim, body)
            assert between.held_back.wait(30)
            victim.signal(signal.SIGSTOP)
            stopped = time.monotonic()
            with psycopg.connect(url, autocommit=True) as connection:
                assert ("active", "ClientRead") in connection.execute(HOLDING).fetchall()

            other = new_body()
            told = (table.propose(survivor, other) for _ in itertools.count())
            codes = [one.status_code for one in itertools.takewhile(_is_unavailable, told)]
            assert time.monotonic() - stopped < BOUND_S
            # Whoever waits for the lock is told so after ten seconds, and asks again.
            assert len(codes) <= 3

            victim.signal(signal.SIGCONT)
            first = answer.result()
            assert first is not None
            again = table.propose(survivor, body)
            assert again is not None
            assert landed(again)["version"] == 2
            assert first.status_code == 503 or landed(first) == landed(again)
            check_log(table)
            two.client.close()


def _is_unavailable(answer) -> bool:
    assert answer is not None
    if answer.status_code == 503:
        return True
    assert landed(answer)["version"] == 1
    return False
