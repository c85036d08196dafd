"""What a 409 or 422 says of an id and body stays true: they never land.

An attempt that nobody heard of again may be on its way while a later one is refused: a PUT that is
late, an instance that was stopped in front of it, a group of files behind versions that no index
holds. Here such an attempt would land, were it not for the fence.
"""

import json
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import psycopg
import pytest

from tests.builders.flights import SCHEMA, add, proposal
from tests.servers.postgres import cloned
from tests.service.api.http.test_api_unavailable import eventually
from tests.service.instances import Deed
from tests.service.process.killed.crashing import Pair, Table, check_log, landed, pair
from tests.service.process.test_stopped import END_SECTIONS, LOCK_TABLE
from tidegate_service.core.observe.faults import Side, Step

WAITING = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%FOR UPDATE'
"""
"""For a table's row, to commit. What claims it for its upkeep waits there, too."""
NOT_NULL = {**SCHEMA, "fields": [{**SCHEMA["fields"][0], "nullable": False}, SCHEMA["fields"][1]]}
NOWHERE = {"month": None, "path": "month=__HIVE_DEFAULT_PARTITION__/a.parquet"}


@pytest.fixture(scope="module")
def url(postgres_server, migrated_template) -> Iterator[str]:
    with cloned(postgres_server.url, migrated_template) as url:
        yield url


@pytest.fixture(scope="module")
def two(url, tmp_path_factory) -> Iterator[Pair]:
    with pair(url, tmp_path_factory.mktemp("final")) as made:
        yield made


@pytest.fixture
def sending() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(3) as pool:
        yield pool


def create(two: Pair, *, catalog_managed: bool = False) -> Table:
    """A table whose partition column may not be null."""
    return two.create(catalog_managed=catalog_managed, schema=NOT_NULL)


def made_nullable(table: Table) -> dict[str, object]:
    """The metaData action by which it may."""
    content = table.content(table.pair.survivor, 0).decode()
    (metadata,) = (
        action["metaData"]
        for action in map(json.loads, content.splitlines())
        if "metaData" in action
    )
    return {"metaData": {**metadata, "schemaString": json.dumps(SCHEMA)}}


def stopped_with(
    table: Table,
    bodies: list[dict[str, object]],
    step: Step,
    url: str,
    sending: ThreadPoolExecutor,
    *,
    foreign: str | None = None,
) -> Callable[[], list[httpx.Response]]:
    """The victim, stopped before the step with all of these in one group, and its lock lost. What
    is returned has it go on, and waits for its answers. Another writer's version 1, if there is a
    `foreign` one, is in the log before the group is."""
    two = table.pair

    def post(body: dict[str, object]) -> httpx.Response:
        return httpx.post(f"{two.victim.api}/tables/{table.name}/commits", json=body, timeout=60.0)

    def is_pending(body: dict[str, object]) -> bool:
        path = f"{two.victim.api}/tables/{table.name}/transactions/{body['transaction_id']}"
        return two.client.get(path).json().get("state") == "pending"

    # Refused at any version, and the first in the row: the others wait for it together.
    first = proposal(add(month="1", size=0), read_version=0, transaction_id="first")
    with psycopg.connect(url) as holding, psycopg.connect(url, autocommit=True) as looking:
        holding.execute(LOCK_TABLE, [table.name])
        ahead = sending.submit(post, first)
        eventually(lambda: looking.execute(WAITING).fetchone() == (1,))
        answers = []
        for body in bodies:
            answers.append(sending.submit(post, body))
            eventually(lambda body=body: is_pending(body))
        if foreign is not None:
            # Not before: whoever asks for an id that is not known yet reads the log on, and waits
            # for the row.
            (table.folder / "_delta_log" / f"{1:020d}.json").write_text(foreign)
        two.victim.arm(step, Side.BEFORE, Deed.STOP)
        holding.rollback()
        assert two.victim.reached() == (step, Side.BEFORE)
        assert ahead.result().status_code == 422
        # Others of the table, such as its upkeep's, may end by themselves meanwhile.
        assert (True,) in looking.execute(END_SECTIONS).fetchall()

    def go_on() -> list[httpx.Response]:
        two.victim.signal(signal.SIGCONT)
        return [answer.result() for answer in answers]

    return go_on


def lands_alone(table: Table, change: dict[str, object], told: list[httpx.Response]) -> None:
    """Whoever was put first met the fence, and lands behind it. Whoever runs out of time, as on a
    busy machine, is told nothing but that."""
    changed, appended = told
    assert changed.status_code in (200, 201, 503)
    assert appended.status_code in (410, 503)
    again = table.propose(table.pair.survivor, change)
    assert again is not None
    assert landed(again)["version"] == 2
    assert table.ids()[2:] == [change["transaction_id"]]


def closed_for_good(table: Table, body: dict[str, object]) -> None:
    for instance in (table.pair.survivor, table.pair.victim):
        again = table.propose(instance, body)
        assert again is not None
        assert (again.status_code, again.json()["code"]) == (410, "transaction-aborted")
    check_log(table)
    assert body["transaction_id"] not in table.ids()


PLAIN = pytest.mark.parametrize("note", ["", "x" * 70_000], ids=["put together", "put alone"])


def widening(table: Table, note: str = "") -> tuple[dict[str, object], dict[str, object]]:
    """A change of the table, and an append that only goes behind it."""
    made = made_nullable(table)
    change = proposal(
        {"metaData": {**made["metaData"], "description": note}},
        operation="CHANGE COLUMN",
        read_version=0,
        transaction_id=f"change-{table.name}",
    )
    return change, proposal(add(**NOWHERE), transaction_id=f"append-{table.name}")


@PLAIN
def test_what_was_decided_behind_another_ones_file_does_not_land_after_a_422(
    two, url, sending, note
):
    """Its version is the one after the next."""
    table = create(two)
    change, append = widening(table, note)
    go_on = stopped_with(table, [change, append], Step.O6_PUT, url, sending)
    refused = table.propose(two.survivor, append)
    assert refused is not None
    assert (refused.status_code, refused.json()["code"]) == (422, "partition-mismatch")
    lands_alone(table, change, go_on())
    closed_for_good(table, append)


@PLAIN
def test_an_id_that_is_aborted_does_not_land_behind_another_ones_file(two, url, sending, note):
    table = create(two)
    change, append = widening(table, note)
    go_on = stopped_with(table, [change, append], Step.O6_PUT, url, sending)
    assert table.abort(two.survivor, str(append["transaction_id"])).status_code == 200
    lands_alone(table, change, go_on())
    closed_for_good(table, append)


def test_what_was_decided_behind_foreign_versions_is_judged_there_by_others_too(two, url, sending):
    """The section that read them in was never saved."""
    table = create(two)
    foreign = json.dumps(made_nullable(table)) + "\n"
    # One that reads ahead has the foreign version taken in for both.
    ahead = proposal(add(month="2"), read_version=1, transaction_id=f"ahead-{table.name}")
    append = proposal(add(**NOWHERE), transaction_id=f"append-{table.name}")
    go_on = stopped_with(table, [ahead, append], Step.O6_PUT, url, sending, foreign=foreign)
    first = table.propose(two.survivor, append)
    assert first is not None
    assert landed(first)["version"] == 2
    of_ahead, of_append = go_on()
    assert landed(of_append) == landed(first)
    # Its file was not put, since the name was taken, and the section's session had ended.
    assert (of_ahead.status_code, of_ahead.json()["retryable"]) == (503, True)
    again = table.propose(two.survivor, ahead)
    assert again is not None
    assert landed(again)["version"] == 3


def test_a_catalog_managed_tables_group_ends_with_its_lock(two, url, sending):
    table = create(two, catalog_managed=True)
    change, append = widening(table)
    go_on = stopped_with(table, [change, append], Step.M6_COMMIT, url, sending)
    refused = table.propose(two.survivor, append)
    assert refused is not None
    assert (refused.status_code, refused.json()["code"]) == (422, "partition-mismatch")
    changed, appended = go_on()
    assert changed.status_code in (201, 503)
    # Whoever waits for longer than its deadline is told of nothing but that.
    assert appended.status_code in (410, 503)
    closed_for_good(table, append)


def test_a_catalog_managed_tables_commit_is_waited_for_before_anything_is_said(two, url, sending):
    """Stopped before COMMIT, it holds the row: whoever asks meanwhile is told nothing definite."""
    table = create(two, catalog_managed=True)
    body = proposal(add(month="1"), transaction_id=f"append-{table.name}")
    two.victim.arm(Step.M6_COMMIT, Side.BEFORE, Deed.STOP)
    answer = sending.submit(table.propose, two.victim, body)
    two.victim.reached()
    other = sending.submit(table.propose, two.survivor, body)
    with psycopg.connect(url, autocommit=True) as looking:
        eventually(lambda: looking.execute(WAITING).fetchone() == (1,))
    two.victim.signal(signal.SIGCONT)
    first, second = answer.result(), other.result()
    assert first is not None
    assert second is not None
    assert landed(first) == landed(second)
    assert sorted([first.status_code, second.status_code]) == [200, 201]
