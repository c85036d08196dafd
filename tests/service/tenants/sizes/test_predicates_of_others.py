"""Commits whose predicates have some 200 characters, as updates have, wait for no longer ones."""

import itertools
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.builders.flights import add, proposal
from tests.service.tenants.rig import attacked

PRINCIPALS = 4
SOME_THOUSAND = " or ".join(["month=0"] * 300)
AS_MANY_AS_MAY_BE = " or ".join(["month=0"] * 5_400)
TRIED_AGAIN = f"(values {'struct(' * 22}1{')' * 22} 1 1) = month"
"""By the parsing library, twice as often for each level more."""
QUERIES = " or ".join([f"(values {'object(' * 20}1{')' * 20})=1"] * 220)
KINDS = {
    "some thousand": [SOME_THOUSAND],
    "as many as may be": [AS_MANY_AS_MAY_BE],
    "queries": [TRIED_AGAIN, QUERIES],
    "all": [SOME_THOUSAND, AS_MANY_AS_MAY_BE, TRIED_AGAIN, QUERIES],
}
DONE = {200, 409}
LATE = {503, 429}


@pytest.fixture(scope="module")
def limits() -> dict[str, Any]:
    return {"auth": "tokens"}


@pytest.fixture(scope="module")
def attackers(service) -> Iterator[list[httpx.Client]]:
    with service.attackers(PRINCIPALS) as clients:
        yield clients


@pytest.mark.parametrize(
    "kind",
    [
        "some thousand",
        "as many as may be",
        "queries",
        "all",
    ],
)
def test_of_several_principals(service, attackers, kind):
    url = service.create(f"main.other.{kind.replace(' ', '_')}")
    service.client.post(f"{url}/commits", json=proposal(add())).raise_for_status()
    turns = itertools.cycle(itertools.product(attackers, KINDS[kind]))
    numbers = itertools.count(1)

    def attack(_):
        client, predicate = next(turns)
        # Another one each time.
        reads = {"predicates": [f"{predicate} or month = -{next(numbers)}"]}
        body = proposal(add("month=7/b"), read_version=1, reads=reads)
        return client.post(f"{url}/conflict-check", json=body).status_code

    with attacked(service, attack, at_once=2 * PRINCIPALS, call="updates") as measured:
        measured.check(grown_mib=300)
    assert DONE & set(measured.answers)
    assert set(measured.answers) <= DONE | LATE
