"""Schemas and properties as large as they may be, and larger: making tables of them, and committing
to these, stops nobody's commits."""

import itertools

import pytest

from tests.builders.flights import add, proposal
from tests.service.tenants.rig import attacked
from tidegate_protocol.features.properties import MAX_PROPERTIES
from tidegate_protocol.schema.table_schema import MAX_FIELDS

GROWN_MIB = 500
"""Definitions that are remembered, each some ten times its text, those that are made, and what of
them waits for the next collection."""
TABLES = 6
"""More than the definitions that are remembered of large ones."""
LONG_NAME = "x" * 90


def fields(count: int, name: str = ""):
    return [
        {"name": f"c{number}{name}", "type": "string", "nullable": True, "metadata": {}}
        for number in range(count)
    ]


def struct(*of):
    return {"type": "struct", "fields": list(of)}


WIDE = fields(MAX_FIELDS - 1)
DEFINITIONS = {
    "partitioned by all but one": {
        "schema": struct(*WIDE),
        "partition_columns": [field["name"] for field in WIDE[1:]],
    },
    "fields with metadata": {
        "schema": struct(*({**field, "metadata": {"x": [{}]}} for field in WIDE))
    },
    "as many properties as are taken": {
        "schema": struct(*fields(1)),
        "properties": {f"p{number}": "" for number in range(MAX_PROPERTIES - 1)},
    },
    "more": {
        "schema": struct(*fields(1)),
        "properties": {str(number): "" for number in range(90_000)},
    },
}
STATUSES = {"more": {422}}


@pytest.mark.parametrize("kind", DEFINITIONS)
def test_tables_are_made_of_them(service, kind):
    """Again and again under one name, which is found to be taken at the end."""
    body = {"name": f"main.other.{kind.replace(' ', '_')}", **DEFINITIONS[kind]}

    def attack(_):
        return service.client.post(f"{service.api}/tables", json=body).status_code

    with attacked(service, attack, at_once=4) as measured:
        measured.check(grown_mib=GROWN_MIB)
    assert set(measured.answers) <= STATUSES.get(kind, {201, 409})


@pytest.mark.parametrize("catalog_managed", [True, False])
def test_commits_to_tables_of_them(service, catalog_managed):
    """Small ones, to more tables than are remembered."""
    schema = struct(*fields(MAX_FIELDS - 1, LONG_NAME))
    urls = []
    for number in range(TABLES):
        body = {
            "name": f"main.other.wide_{catalog_managed}_{number}".lower(),
            "schema": schema,
            "catalog_managed": catalog_managed,
        }
        service.created(body)
        urls.append(f"{service.api}/tables/{body['name']}")
    turns = itertools.cycle(urls)
    paths = itertools.count()

    def attack(_):
        sent = proposal(add(f"f{next(paths)}", partitionValues={}))
        return service.client.post(f"{next(turns)}/commits", json=sent).status_code

    with attacked(service, attack, at_once=8) as measured:
        measured.check(grown_mib=GROWN_MIB)
    assert set(measured.answers) == {201}
