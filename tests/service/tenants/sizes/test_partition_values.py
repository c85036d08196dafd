"""Partitions whose values are as long as a line may be: scans of them stop nobody's commits."""

import pytest

from tests.builders.flights import add, proposal
from tests.service.tenants.rig import MIB, attacked

COMMITS = 3
FILES = 8
"""Of each commit, a partition each."""
VALUE_BYTES = 3 * MIB
GROWN_MIB = 128
"""Two pages of two values for the scan that runs, each there as it came, as text and decoded."""


@pytest.fixture(scope="module")
def table(service) -> str:
    url = service.create("main.other.values", partition_columns=["carrier"])
    stats = '{"numRecords":3,"minValues":{"month":9},"maxValues":{"month":9}}'
    for commit in range(COMMITS):
        paths = [f"{commit}{number}" for number in range(FILES)]
        values = [{"carrier": path + "x" * VALUE_BYTES} for path in paths]
        adds = [
            add(path, partitionValues=each, stats=stats)
            for path, each in zip(paths, values, strict=True)
        ]
        service.client.post(f"{url}/commits", json=proposal(*adds)).raise_for_status()
    return url


@pytest.mark.parametrize(
    ("predicate", "files"),
    [("carrier = '005'", COMMITS * FILES), ("month = 3", 0)],
    ids=["of partitions", "of files"],
)
def test_scans_of_them(service, table, predicate, files):
    """Nothing is known of values that are so long: they may match."""

    def attack(_):
        answer = service.client.post(f"{table}/scan", json={"predicates": [predicate]})
        return answer.status_code, len(answer.json()["files"])

    with attacked(service, attack, at_once=2) as measured:
        measured.check(grown_mib=GROWN_MIB)
    assert (200, files) in measured.answers
