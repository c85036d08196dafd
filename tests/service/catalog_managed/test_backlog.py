"""What is turned away because too much waits already: for publishing, or for its table's turn."""

from concurrent.futures import ThreadPoolExecutor

import httpx
import psycopg
import pytest

from tests.builders.by_x import add
from tests.builders.flights import TABLE, table_body
from tests.builders.flights import add as add_line
from tests.builders.flights import proposal as body_of
from tests.builders.proposals import proposal
from tests.service.api.http.test_api_unavailable import eventually, locked
from tests.service.commit.committing import paths
from tests.service.commit.groups.grouping import instance
from tests.service.commit.groups.test_groups import BOTH, versions
from tests.service.serving import DocumentedClient
from tidegate_protocol.base.problems import Code
from tidegate_service.background.publisher import Publisher
from tidegate_service.core.errors import Unavailable

PATIENCE_S = 20.0


class TestPublishing:
    """Versions that wait for it."""

    @pytest.mark.anyio
    async def test_no_more_land_than_may_wait_and_the_others_later(self, world, index):
        one = instance(world, max_unpublished_versions=3)
        table = await world.create(catalog_managed=True)
        publisher = Publisher(index, world.context.storage)
        # Version 0 waits like any other.
        assert await publisher.round() == 1
        sent = [proposal(add(f"a{n}"), read_version=0) for n in range(5)]

        told = await one.at_once(table, *sent)

        assert versions(told[:3]) == [1, 2, 3]
        for refused in told[3:]:
            assert isinstance(refused, Unavailable), refused
            assert refused.code is Code.BACKPRESSURE
            assert "3 versions" in refused.detail
        assert (await index.table(table.id)).latest_version == 3
        *replays, refused, too = await one.at_once(table, *sent)
        assert all(outcome.replayed for outcome in replays)
        assert [outcome.record for outcome in replays] == [outcome.record for outcome in told[:3]]
        assert refused.code is too.code is Code.BACKPRESSURE

        assert await publisher.round() == 3
        # The room of three: two of before, and one more.
        further = [proposal(add(f"b{n}"), read_version=0) for n in range(2)]
        *landed, refused = await one.at_once(table, *sent[3:], *further)
        assert versions(landed) == [4, 5, 6]
        assert refused.code is Code.BACKPRESSURE
        assert await paths(index, table, 6) == ["a0", "a1", "a2", "a3", "a4", "b0"]

    def test_while_the_store_is_away_commits_land_until_too_many_wait(
        self, start_service, tmp_path
    ):
        service = start_service(max_unpublished_versions=1)
        warehouse, away = tmp_path / "warehouse", tmp_path / "away"
        with DocumentedClient(base_url=f"{service.url}/api/v1", timeout=40) as api:
            api.post("/tables", json=table_body(catalog_managed=True)).raise_for_status()
            eventually(lambda: api.get(f"/tables/{TABLE}").json()["published_version"] == 0)
            warehouse.rename(away)
            try:
                # Who has landed is told so, however much waits.
                assert [commit(api, "t-1").status_code for _ in range(2)] == [201, 200]
                refused = commit(api, "t-2")
                assert_turned_away(refused, "t-2")
                assert "wait for publishing" in refused.json()["detail"]
            finally:
                away.rename(warehouse)
            eventually(lambda: commit(api, "t-2").status_code == 201)
            assert commit(api, "t-2").json()["version"] == 2


class TestTurns:
    """Proposals that wait for their table."""

    @BOTH
    def test_no_more_wait_for_a_table_than_may(self, start_service, database_url, catalog_managed):
        service = start_service(max_waiting_per_table=1)
        with DocumentedClient(base_url=f"{service.url}/api/v1", timeout=40) as api:
            made = table_body(catalog_managed=catalog_managed)
            api.post("/tables", json=made).raise_for_status()
            # Else the publisher waits for the lock as well.
            eventually(lambda: api.get(f"/tables/{TABLE}").json()["published_version"] == 0)
            with ThreadPoolExecutor(2) as pool, locked(database_url):
                begun = pool.submit(commit, api, "t-1")
                eventually(lambda: lock_waits(database_url) == 1)
                waiting = pool.submit(commit, api, "t-2")
                eventually(lambda: is_pending(api, "t-2"))
                refused = commit(api, "t-3")
                assert_turned_away(refused, "t-3")
                assert "wait for table" in refused.json()["detail"]
                assert not is_pending(api, "t-3")
                assert not begun.done()
                assert not waiting.done()
            told = [begun.result(), waiting.result(), commit(api, "t-3")]
            assert [answer.status_code for answer in told] == [201] * 3
            assert [answer.json()["version"] for answer in told] == [1, 2, 3]


def commit(api: httpx.Client, transaction_id: str) -> httpx.Response:
    body = body_of(add_line(f"month=5/{transaction_id}"), transaction_id=transaction_id)
    return api.post(f"/tables/{TABLE}/commits", json=body)


def is_pending(api: httpx.Client, transaction_id: str) -> bool:
    found = api.get(f"/tables/{TABLE}/transactions/{transaction_id}")
    return found.status_code == 200 and found.json()["state"] == "pending"


def assert_turned_away(answer: httpx.Response, transaction_id: str) -> None:
    assert answer.status_code == 429
    assert answer.headers["retry-after"] == "1"
    problem = answer.json()
    assert (problem["code"], problem["retryable"]) == ("backpressure", True)
    assert problem["transaction_id"] == transaction_id
    assert "nothing was done" in problem["detail"]


def lock_waits(database_url: str) -> int:
    """How many connections wait to commit. Claims of a table's upkeep wait for its row, too."""
    with psycopg.connect(database_url) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE datname = current_database() AND wait_event_type = 'Lock' "
            "AND query LIKE '%FOR UPDATE'"
        ).fetchone()
    assert row is not None
    return int(row[0])
