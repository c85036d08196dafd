"""Small proposals whose checks are much work hold up nobody else's commits."""

import itertools

import pytest

from tests.builders.flights import add, proposal
from tests.service.tenants.rig import Service, attacked

TABLES = 3
WINNERS = 1_500
GROWN_MIB = 400
TERMS = 180


def expression(first: int) -> str:
    """Three thousand characters, which take a tenth of a second to be read, each time others."""
    return " or ".join(f"(month+1<{number})" for number in range(first, first + TERMS))


@pytest.fixture(scope="module")
def tables(service: Service) -> list[str]:
    return [
        service.create(
            f"main.other.rules{number}", properties={"delta.feature.domainMetadata": "supported"}
        )
        for number in range(TABLES)
    ]


def test_expressions_of_short_metadata(service, tables):
    table, numbers = tables[0], itertools.count()
    found = service.client.get(table).json()["metadata"]

    def attack(_):
        constraint = {"delta.constraints.c": expression(next(numbers))}
        metadata = {**found, "configuration": {**found["configuration"], **constraint}}
        body = proposal({"metaData": metadata}, operation="ADD CONSTRAINT", read_version=0)
        sent = service.client.post(f"{table}/commits", json=body)
        return sent.status_code, sent.json().get("code")

    with attacked(service, attack, at_once=40) as measured:
        measured.check(grown_mib=GROWN_MIB)
    # One of them lands, after its expression was read; so was that of each that lost to it.
    landed = (201, None)
    assert measured.answers.count(landed) == 1
    lost, too_slow = (409, "protocol-changed"), (503, "index-unavailable")
    assert {landed, lost} <= set(measured.answers) <= {landed, lost, too_slow}


def test_comparisons_with_many_winners(service, tables):
    """None of which an index is of use for."""
    two = tables[1:]
    for table in two:
        for number in range(WINNERS):
            domain = {"domain": "d", "configuration": str(number), "removed": False}
            body = proposal({"domainMetadata": domain}, read_version=number)
            service.client.post(f"{table}/commits", json=body).raise_for_status()
    turns, names = itertools.cycle(two), itertools.count()

    def attack(_):
        body = proposal(add(f"late{next(names)}"), read_version=0)
        return service.client.post(f"{next(turns)}/commits", json=body).status_code

    with attacked(service, attack, at_once=40) as measured:
        measured.check(grown_mib=GROWN_MIB)
    assert 201 in measured.answers
