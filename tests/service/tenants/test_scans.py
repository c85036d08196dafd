"""Scans whose callers are gone, and scans that never end, stop nobody's commits."""

import time

import httpx
import pytest

from tests.builders.flights import add, proposal
from tests.service.tenants.rig import attacked

GROWN_MIB = 200
FILES = 20_000
DEADLINE_S = 5.0
SLOW = {"predicates": [" or ".join(f"month = {number}" for number in range(800))]}
"""12 KB, judged for each file by itself: `month` is no partition column."""


@pytest.fixture(scope="module")
def deadline_s():
    return DEADLINE_S


@pytest.fixture(scope="module")
def table(service):
    url = service.create("main.other.scans", partition_columns=["carrier"])
    stats = '{"numRecords":3,"minValues":{"month":900},"maxValues":{"month":900}}'
    adds = [
        add(f"{number}", partitionValues={"carrier": "a"}, stats=stats) for number in range(FILES)
    ]
    service.client.post(f"{url}/commits", json=proposal(*adds)).raise_for_status()
    return url


def test_whose_callers_are_gone(service, table):
    def attack(_):
        with pytest.raises(httpx.TimeoutException):
            service.client.post(f"{table}/scan", json=SLOW, timeout=0.5)

    with attacked(service, attack, at_once=10) as measured:
        measured.check(grown_mib=GROWN_MIB)


def test_it_ends_at_its_deadline(service, table):
    """Whatever it finds on its way: nothing here, a file in each batch there."""
    found = {"predicates": [f"{SLOW['predicates'][0]} or carrier = 'a'"]}
    for body, most_s in ((SLOW, DEADLINE_S), (found, 2 * DEADLINE_S)):
        began = time.monotonic()
        try:
            answer = httpx.post(f"{table}/scan", json=body, timeout=100.0)
            assert answer.json()["code"] == "deadline-exceeded"
        except httpx.RemoteProtocolError:
            pass
        assert time.monotonic() - began < most_s + 3.0
