"""A flood of one principal is its own: it is told to come back later, and another one goes on."""

import itertools
import json
from typing import Any

import httpx
import pytest

from tests.builders.flights import add, proposal
from tests.service.api.http.connections.requests_by_hand import JSON_TYPE
from tests.service.tenants.rig import MIB, WRITERS_TABLE, attacked

TURNED_AWAY = (429, "backpressure")
LANDED = (201, "")
LATE = {(503, "deadline-exceeded"), (0, "")}
"""Where a slow machine takes longer for what the flood asks than the deadline."""
GROWN_MIB = 150
TABLES = {"own": 1, "many": 40}
"""More of them than one has in a group."""


@pytest.fixture(scope="module")
def limits() -> dict[str, Any]:
    """Few enough that some threads reach them."""
    return {
        "auth": "tokens",
        "max_requests_per_principal": 40,
        "max_waiting_per_table": 16,
        "max_stream_bytes": 96 * MIB,
    }


def told(answer: httpx.Response) -> tuple[int, str]:
    """The status and the code of a problem. Who has to come back is told when."""
    if answer.is_success:
        return answer.status_code, ""
    if answer.status_code in (429, 503):
        assert int(answer.headers["retry-after"]) > 0
    return answer.status_code, answer.json()["code"]


def posted(client: httpx.Client, url: str, **fields: Any) -> tuple[int, str]:
    try:
        return told(client.post(url, **fields))
    except (httpx.NetworkError, httpx.RemoteProtocolError):
        return (0, "")


@pytest.mark.parametrize("whose", ["own", "many", "shared"])
def test_of_commits(service, whose):
    """Into tables of the flood's own, one and many, and into the writer's."""
    urls = [f"{service.api}/tables/{WRITERS_TABLE}"]
    if whose != "shared":
        names = [f"main.other.{whose}{number}" for number in range(TABLES[whose])]
        urls = [service.create(name) for name in names]
    numbers = itertools.count()

    def attack(_):
        number = next(numbers)
        body = proposal(add(f"month=5/flood/{number}"))
        return posted(service.client, f"{urls[number % len(urls)]}/commits", json=body)

    with attacked(service, attack, at_once=32) as measured:
        measured.check(grown_mib=GROWN_MIB)
    assert LANDED in measured.answers
    assert set(measured.answers) <= {LANDED, TURNED_AWAY}
    assert TURNED_AWAY in measured.answers or whose == "many"


@pytest.fixture(scope="module")
def many_files(service) -> str:
    url = service.create("main.other.scans", partition_columns=["carrier"])
    stats = '{"numRecords":3,"minValues":{"month":900},"maxValues":{"month":900}}'
    adds = [
        add(f"{number}", partitionValues={"carrier": "a"}, stats=stats) for number in range(1_000)
    ]
    service.client.post(f"{url}/commits", json=proposal(*adds)).raise_for_status()
    return url


@pytest.mark.parametrize("call", ["commits", "scan"])
def test_of_scans(service, many_files, call):
    """Beside another's commits, and beside another's scans."""
    predicates = [" or ".join(f"month = {number}" for number in range(100))]

    def attack(_):
        return posted(service.client, f"{many_files}/scan", json={"predicates": predicates})

    with attacked(service, attack, at_once=16, call=call) as measured:
        measured.check(grown_mib=GROWN_MIB)
    assert {(200, ""), TURNED_AWAY} <= set(measured.answers) <= {(200, ""), TURNED_AWAY, *LATE}


def test_of_large_bodies(service):
    """Another's are taken, too: there is room left for them."""
    url = service.create("main.other.bodies")
    noted = add(path="../not-here", tags={"x": "x" * MIB})
    body = json.dumps(proposal(*[noted] * 20)).encode()

    def attack(_):
        return posted(service.client, f"{url}/commits", content=body, headers=JSON_TYPE)

    theirs = service.create("main.writer.large")
    with attacked(service, attack, at_once=8) as measured:
        for number in range(5):
            large = proposal(*[add(f"{number}/{part}", tags={"x": "x" * MIB}) for part in range(4)])
            assert told(service.writers_client.post(f"{theirs}/commits", json=large)) == LANDED
        measured.check(grown_mib=2 * 96 + GROWN_MIB)
    refused = (422, "invalid-path")
    assert {refused, TURNED_AWAY} <= set(measured.answers) <= {refused, TURNED_AWAY, *LATE}
