"""Comparing one's own large versions stops nobody's commits."""

from tests.builders.flights import add, ndjson
from tests.service.api.http.connections.requests_by_hand import NDJSON_TYPE
from tests.service.tenants.rig import attacked

GROWN_MIB = 400
FILES = 150_000


def test_of_one_version_of_very_many_files(service):
    url = service.create("main.other.compared", partition_columns=[])
    body = ndjson(*(add(f"part-{number}", partitionValues={}) for number in range(FILES)))
    landed = service.client.post(f"{url}/commits", content=body, headers=NDJSON_TYPE, timeout=120.0)
    version = landed.raise_for_status().json()["version"]
    asked = {"from_version": version, "limit": 1}

    def attack(_):
        answer = service.client.get(f"{url}/verify", params=asked, timeout=120.0)
        return answer.status_code, answer.json().get("differences")

    with attacked(service, attack, at_once=2) as measured:
        measured.check(grown_mib=GROWN_MIB)
    assert (200, []) in measured.answers
