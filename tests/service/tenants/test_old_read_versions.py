"""Proposals that read the table long ago hold up nobody's commits to that very table."""

import itertools

import pytest

from tests.builders.flights import add, ndjson, proposal
from tests.service.api.http.connections.requests_by_hand import NDJSON_TYPE
from tests.service.tenants.rig import WRITERS_TABLE, attacked

COMMITS = 4
FILES = 50_000
"""Of each commit: together more than is kept in memory of a table."""
GROWN_MIB = 512
"""A page of the commits, which may be one, for each proposal that is checked."""


@pytest.fixture(scope="module")
def table(service) -> str:
    url = f"{service.api}/tables/{WRITERS_TABLE}"
    for number in range(COMMITS):
        lines = ndjson(*(add(f"{number}-{file}") for file in range(FILES)))
        sent = service.client.post(f"{url}/commits", content=lines, headers=NDJSON_TYPE)
        sent.raise_for_status()
    return url


@pytest.mark.parametrize("path", ["commits", "conflict-check"])
def test_they_are_checked_before_the_lock(service, table, path):
    names = itertools.count()

    def attack(_):
        body = proposal(
            add(f"late-{path}-{next(names)}"), read_version=0, reads={"files": ["none"]}
        )
        return service.client.post(f"{table}/{path}", json=body).status_code

    with attacked(service, attack, at_once=2) as measured:
        measured.check(grown_mib=GROWN_MIB)
    assert {200, 201} & set(measured.answers)
    assert set(measured.answers) <= {200, 201, 429}
