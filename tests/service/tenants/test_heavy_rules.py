"""Small proposals whose checks are much work hold up nobody else's commits."""

import itertools
import json

import pytest

from tests.builders.flights import SCHEMA, add, proposal
from tests.service.tenants.rig import Service, attacked

TABLES = 6
WINNERS = 1_500
GROWN_MIB = 400
EXPRESSION = " or ".join(f"(month+1<{number})" for number in range(180))
"""Three thousand characters, which take a tenth of a second to be read."""


@pytest.fixture(scope="module")
def tables(service: Service) -> list[str]:
    return [
        service.create(
            f"main.other.rules{number}", properties={"delta.feature.domainMetadata": "supported"}
        )
        for number in range(TABLES)
    ]


def test_expressions_of_short_metadata(service, tables):
    turns = itertools.cycle(tables)
    metadata = {
        "id": "2d0d2e3a-6b1c-4a52-8a52-0f7f2d5d6c3b",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(SCHEMA),
        "partitionColumns": [],
        "configuration": {"delta.constraints.c": EXPRESSION},
    }
    body = proposal({"metaData": metadata}, operation="ADD CONSTRAINT", read_version=0)
    assert len(json.dumps(body)) < 4_500

    def attack(_):
        return service.client.post(f"{next(turns)}/commits", json=body).status_code

    with attacked(service, attack, at_once=40) as measured:
        measured.check(grown_mib=GROWN_MIB)
    assert 500 not in measured.answers


def test_comparisons_with_many_winners(service, tables):
    """None of which an index is of use for."""
    two = tables[:2]
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
