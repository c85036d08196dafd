"""Instances that stop in the middle of a commit and go on when the world has changed.

A stopped instance cannot tell that its lock is gone. What it then does with its old decision
has to come to nothing, or to exactly what it was.
"""

import signal
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import httpx
import psycopg
import pytest

from tests.servers.postgres import cloned
from tests.service.instances import Deed
from tests.service.process.killed.crashing import Pair, Table, check_log, landed, new_body, pair
from tidegate_service.core.observe.faults import Side, Step
from tidegate_service.index.embedded.server import EmbeddedPostgres

LOCK_TABLE = "SELECT 1 FROM tables WHERE name = %s FOR UPDATE"
END_SECTIONS = """
    SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
    WHERE datname = current_database() AND state = 'idle in transaction'
"""


@pytest.fixture(scope="module")
def url(postgres_server: EmbeddedPostgres, migrated_template: str) -> Iterator[str]:
    with cloned(postgres_server.url, migrated_template) as url:
        yield url


@pytest.fixture(scope="module")
def two(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with pair(url, tmp_path_factory.mktemp("stopped")) as made:
        yield made


@pytest.fixture
def sending() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


def stopped_at(
    two: Pair, table: Table, step: Step, url: str, sending: ThreadPoolExecutor
) -> tuple[dict[str, object], "Future[httpx.Response | None]"]:
    """The victim, stopped before the step with a proposal in its hands; Postgres has ended its
    transaction, as it does with one that is idle for too long. The proposal, and its answer to
    come."""
    body = new_body()
    two.victim.arm(step, Side.BEFORE, Deed.STOP)
    answer = sending.submit(table.propose, two.victim, body)
    assert two.victim.reached() == (step, Side.BEFORE)
    with psycopg.connect(url, autocommit=True) as connection:
        ended = connection.execute(END_SECTIONS).fetchall()
    # The publisher's is one, too, where it is at work just then; it begins again.
    assert set(ended) == {(True,)}
    return body, answer


def settled(
    two: Pair, table: Table, body: dict[str, object], answer: "Future[httpx.Response | None]"
) -> dict[str, object]:
    """Where the proposal is in the end, however often it is sent."""
    two.victim.signal(signal.SIGCONT)
    first = answer.result()
    assert first is not None
    again = [table.propose(instance, body) for instance in (two.survivor, two.victim)]
    told = [landed(each) for each in again if each is not None]
    assert told[0] == told[1]
    assert first.status_code == 503 or landed(first) == told[0]
    check_log(table)
    assert table.ids().count(str(body["transaction_id"])) == 1
    return told[0]


@pytest.mark.parametrize("step", [Step.O4_DECIDE, Step.O6_PUT])
def test_a_plain_tables_version_was_taken_in_between(two, url, sending, step):
    table = two.create(catalog_managed=False)
    body, answer = stopped_at(two, table, step, url, sending)
    other = table.propose(two.survivor, new_body())
    assert other is not None
    assert landed(other)["version"] == 1
    assert settled(two, table, body, answer)["version"] == 2


def test_a_plain_tables_version_is_still_free(two, url, sending):
    """The PUT lands, long after the lock was lost."""
    table = two.create(catalog_managed=False)
    body, answer = stopped_at(two, table, Step.O6_PUT, url, sending)
    assert settled(two, table, body, answer)["version"] == 1


def test_a_plain_tables_file_is_there_and_its_rows_are_not(two, url, sending):
    table = two.create(catalog_managed=False)
    body, answer = stopped_at(two, table, Step.O8_INDEX, url, sending)
    assert settled(two, table, body, answer)["version"] == 1


@pytest.mark.parametrize("step", [Step.M3_DECIDE, Step.M5_INSERT, Step.M6_COMMIT])
def test_a_catalog_managed_tables_version_was_taken_in_between(two, url, sending, step):
    table = two.create(catalog_managed=True)
    body, answer = stopped_at(two, table, step, url, sending)
    other = table.propose(two.survivor, new_body())
    assert other is not None
    assert landed(other)["version"] == 1
    assert settled(two, table, body, answer)["version"] == 2


@pytest.mark.parametrize("step", [Step.O6_PUT, Step.M6_COMMIT])
def test_what_was_aborted_in_between_never_lands(two, url, sending, step):
    table = two.create(catalog_managed=step is Step.M6_COMMIT)
    body, answer = stopped_at(two, table, step, url, sending)
    identity = str(body["transaction_id"])
    aborted = table.abort(two.survivor, identity)
    assert (aborted.status_code, aborted.json()["state"]) == (200, "aborted")
    two.victim.signal(signal.SIGCONT)
    first = answer.result()
    assert first is not None
    assert first.status_code in (410, 503)
    for instance in (two.victim, two.survivor):
        again = table.propose(instance, body)
        assert again is not None
        assert again.status_code == 410
    check_log(table)
    assert identity not in table.ids()


@pytest.mark.parametrize("catalog_managed", [False, True], ids=["plain", "managed"])
def test_sigterm_lets_a_commit_under_way_finish(two, url, sending, catalog_managed):
    table = two.create(catalog_managed=catalog_managed)
    body = new_body()
    with psycopg.connect(url) as holding:
        holding.execute(LOCK_TABLE, [table.name])
        two.victim.arm(_lock(catalog_managed), Side.BEFORE, Deed.TELL)
        answer = sending.submit(table.propose, two.victim, body)
        two.victim.reached()
        two.victim.signal(signal.SIGTERM)
        with pytest.raises(httpx.HTTPError):
            # Not ready, and nothing new: closed or refused.
            two.client.get(f"{two.victim.url}/readyz").raise_for_status()
        holding.rollback()
    first = answer.result()
    assert first is not None
    assert first.status_code == 201
    assert two.victim.ended() == 0
    two.restart()
    again = table.propose(two.victim, body)
    assert again is not None
    assert landed(again) == landed(first)


def _lock(catalog_managed: bool) -> Step:
    return Step.M1_LOCK if catalog_managed else Step.O1_LOCK
