"""Requests that read much of one's own log, many at a time: one after the other they are few."""

import json
import os
import time
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.builders.flights import add, proposal, table_body
from tests.service.tenants.rig import MIB, Service, attacked

AT_ONCE = 30
LARGE = 4 * MIB - 400
"""Of a commit file that is held as it is."""
PLANTED = 100
VERSIONS = 16
FILES = 3_000


@pytest.fixture(scope="module")
def limits():
    return {"auth": "tokens"}


def made(service: Service, name: str, *, catalog_managed: bool) -> tuple[str, Path, str]:
    """The URL of a new table, the folder of its log, and its location."""
    body = table_body(name, catalog_managed=catalog_managed)
    answer = service.created(body)
    location = answer.json()["location"]
    log = Path(unquote(urlsplit(location).path)) / "_delta_log"
    return f"{service.api}/tables/{name}", log, location


def until_published(service: Service, url: str) -> None:
    while True:
        found = service.client.get(url).raise_for_status().json()
        if found["published_version"] == found["latest_version"]:
            return
        time.sleep(0.1)


def test_conflict_checks_of_a_table_that_others_write_to(service):
    url, log, _ = made(service, "main.other.planted", catalog_managed=False)
    told = {"commitInfo": {"timestamp": 1, "operation": "WRITE", "userMetadata": "x" * LARGE}}
    first = log / f"{1:020}.json"
    first.write_text(json.dumps(told) + "\n")
    for version in range(2, PLANTED + 1):
        os.link(first, log / f"{version:020}.json")
    body = proposal(add("month=5/a"))

    def attack(service: Service) -> int:
        return service.client.post(f"{url}/conflict-check", json=body).status_code

    with attacked(service, attack, at_once=AT_ONCE) as measured:
        measured.check(grown_mib=700)
    assert set(measured.answers) <= {200, 503}, measured.answers


def test_forgetting_of_a_table_with_other_bytes(service):
    """The whole log is read, and the table stays."""
    url, log, _ = made(service, "main.other.differing", catalog_managed=True)
    for version in range(1, VERSIONS + 1):
        tags = {"t": "x" * (LARGE // 4)}
        adds = [add(f"month=5/{version}-{number}", tags=tags) for number in range(3)]
        service.client.post(f"{url}/commits", json=proposal(*adds)).raise_for_status()
    until_published(service, url)
    zero = log / f"{0:020}.json"
    zero.write_bytes(zero.read_bytes() + b"\n")

    def attack(service: Service) -> int:
        return service.client.delete(url).status_code

    with attacked(service, attack, at_once=AT_ONCE) as measured:
        measured.check(grown_mib=300)
    assert set(measured.answers) == {503}, measured.answers


def test_rebuilding_of_a_table_that_lost_its_checkpoint(service):
    """A checkpoint is written first, which others of the principal wait for."""
    name = "main.other.cut"
    url, log, location = made(service, name, catalog_managed=True)
    for version in range(3):
        stats = json.dumps({"numRecords": 1, "x": "y" * 1500})
        adds = [add(f"month=5/{version}-{number}", stats=stats) for number in range(FILES)]
        service.client.post(f"{url}/commits", json=proposal(*adds)).raise_for_status()
    until_published(service, url)
    service.client.post(f"{url}/checkpoint", json={}).raise_for_status()
    service.client.delete(url).raise_for_status()
    for version in range(3):
        (log / f"{version:020}.json").unlink()
    body = {"name": name, "location": location, "catalog_managed": True}
    service.client.post(f"{service.api}/tables/register", json=body).raise_for_status()

    def attack(service: Service) -> int:
        for checkpoint in log.glob("*.checkpoint*"):
            checkpoint.unlink(missing_ok=True)
        # All of them wait for their turns, the last one for all others.
        return service.client.post(f"{url}/rebuild", timeout=300.0).status_code

    with attacked(service, attack, at_once=AT_ONCE) as measured:
        measured.check(grown_mib=400)
    assert set(measured.answers) <= {200, 409, 422, 503}, measured.answers
