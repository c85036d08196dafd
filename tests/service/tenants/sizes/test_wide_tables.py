"""Requests about one's own table with megabytes of metadata, many at a time."""

import itertools

import pytest

from tests.service.tenants.rig import Service, attacked

NAME = "main.other.wide"
COLUMNS, LENGTH = 6_000, 300
AT_ONCE = 120


@pytest.fixture(scope="module")
def wide(service: Service) -> str:
    fields = [
        {"name": f"c{number}" + "x" * LENGTH, "type": "string", "nullable": True, "metadata": {}}
        for number in range(COLUMNS)
    ]
    body = {
        "name": NAME,
        "schema": {"type": "struct", "fields": fields},
        "catalog_managed": True,
    }
    service.created(body)
    return f"{service.api}/tables/{NAME}"


def test_aborts(service: Service, wide: str):
    """Each reads the table under its lock; before, each that waited held what it had read."""
    ids = itertools.count()

    def attack(_: Service) -> int:
        headers = {"Content-Type": "application/json"}
        url = f"{wide}/transactions/t{next(ids)}/abort"
        return service.client.post(url, headers=headers).status_code

    with attacked(service, attack, at_once=AT_ONCE) as measured:
        measured.check(grown_mib=448)
    assert set(measured.answers) <= {200, 429, 503}


@pytest.mark.parametrize("path", ["", "/scan"])
def test_reads(service: Service, wide: str, path: str):
    def attack(_: Service) -> int:
        if path:
            return service.client.post(f"{wide}{path}", json={}).status_code
        return service.client.get(wide).status_code

    with attacked(service, attack, at_once=24) as measured:
        measured.check(grown_mib=384)
    assert set(measured.answers) <= {200, 429, 503}


@pytest.mark.parametrize(
    "path", ["delta/v1/catalogs/main/schemas/other/tables/wide", f"tables/{NAME}"]
)
def test_loads_by_unity_catalogs_api(service: Service, wide: str, path: str):
    """Which renders the columns."""
    url = f"{service.api.removesuffix('/api/v1')}/api/2.1/unity-catalog/{path}"

    def attack(_: Service) -> int:
        return service.client.get(url).status_code

    with attacked(service, attack, at_once=24) as measured:
        measured.check(grown_mib=384)
    assert 200 in measured.answers
    assert set(measured.answers) <= {200, 429, 503}
