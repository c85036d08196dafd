"""Few actions of many bytes stop nobody's commits."""

import gzip
import itertools
import json
import os

import pytest

from tests.builders.flights import SCHEMA, add, ndjson, proposal
from tests.service.api.http.connections.requests_by_hand import JSON_TYPE, NDJSON_TYPE
from tests.service.tenants.rig import MIB, attacked

GROWN_MIB = 500
"""A body of JSON three times, and what is written at a time."""
REPEATED = 32
"""gzip finds it again and again."""


def adds(count: int, size: int):
    """So many, of so many bytes in all."""
    value = os.urandom(size // count // REPEATED // 2).hex() * REPEATED
    stats = json.dumps({"numRecords": 3, "minValues": {"carrier": value}})
    return [add(str(number), partitionValues={}, stats=stats) for number in range(count)]


def lines() -> tuple[bytes, dict[str, str]]:
    sent = gzip.compress(ndjson(*adds(1_500, 160 * MIB)), compresslevel=1)
    return sent, {**NDJSON_TYPE, "Content-Encoding": "gzip"}


def array() -> tuple[bytes, dict[str, str]]:
    return json.dumps(proposal(*adds(15, 50 * MIB))).encode(), JSON_TYPE


@pytest.mark.parametrize("catalog_managed", [True, False])
@pytest.mark.parametrize("made", [lines, array])
def test_they_land(service, made, catalog_managed):
    names = itertools.count()
    body, headers = made()

    def attack(_):
        name = f"main.other.{made.__name__}_{catalog_managed}_{next(names)}".lower()
        table = {"name": name, "schema": SCHEMA, "catalog_managed": catalog_managed}
        service.created(table)
        url = f"{service.api}/tables/{name}/commits"
        return service.client.post(url, content=body, headers=headers).status_code

    with attacked(service, attack) as measured:
        measured.check(grown_mib=GROWN_MIB)
    assert set(measured.answers) == {201}
