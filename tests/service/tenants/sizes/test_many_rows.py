"""Commits that make very many rows, and not by COPY, stop nobody's commits."""

import itertools
import json
from collections.abc import Iterator

import pytest

from tests.builders.flights import add
from tests.service.api.http.connections.requests_by_hand import NDJSON_TYPE
from tests.service.tenants.rig import attacked

FILES = 200_000
TRANSACTIONS = 300_000
DOMAINS = 150_000
GROWN_MIB = 800
SLOWEST_S = 1.5
"""Packed where everybody's requests are, they held up others for two seconds."""
STATISTICS = '{"numRecords":5,"tightBounds":false}'
VECTOR = {
    "storageType": "u",
    "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
    "offset": 1,
    "sizeInBytes": 36,
    "cardinality": 2,
}


def files() -> Iterator[object]:
    for number in range(FILES):
        yield add(str(number), stats=STATISTICS, deletionVector=VECTOR)


def transactions() -> Iterator[object]:
    for number in range(TRANSACTIONS):
        yield {"txn": {"appId": f"a{number}", "version": 1}}


def domains() -> Iterator[object]:
    for number in range(DOMAINS):
        yield {"domainMetadata": {"domain": f"d{number}", "configuration": "", "removed": False}}


@pytest.mark.parametrize("of", [files, *(of for of in (transactions, domains))])
def test_they_land(service, of):
    names = itertools.count()
    lines = ({"operation": "WRITE", "read_version": 0}, *of())
    body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    properties = {
        "delta.enableDeletionVectors": "true",
        "delta.feature.domainMetadata": "supported",
    }

    def attack(_):
        url = service.create(f"main.other.{of.__name__}_{next(names)}", properties=properties)
        sent = service.client.post(f"{url}/commits", content=body, headers=NDJSON_TYPE)
        return sent.status_code, sent.text[:200] if sent.status_code != 201 else ""

    with attacked(service, attack) as measured:
        measured.check(grown_mib=GROWN_MIB, slowest_s=SLOWEST_S)
    assert {status for status, _ in measured.answers} == {201}, measured.answers
