"""Commit files that another put into the log of a table of its own, larger than any commit."""

import json
import os
import shutil
import time
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.builders.flights import add, proposal, table_body
from tests.service.tenants.rig import MIB, Service, attacked
from tests.service.tenants.writer import PATIENCE_S

GIB = 1024 * MIB


def plain(service: Service, name: str) -> tuple[str, Path]:
    """The URL of a new plain table, and the folder of its log."""
    location = service.created(table_body(name)).json()["location"]
    return f"{service.api}/tables/{name}", Path(unquote(urlsplit(location).path)) / "_delta_log"


def commit_file(log: Path, version: int) -> Path:
    return log / f"{version:020}.json"


def sparse(file: Path, size: int) -> None:
    with file.open("wb") as opened:
        opened.truncate(size)


def append(service: Service, url: str) -> tuple[int, str]:
    body = proposal(add(f"month=5/{os.urandom(8).hex()}"))
    answer = service.client.post(f"{url}/commits", json=body)
    return answer.status_code, answer.json().get("code", "")


def state(service: Service, url: str) -> tuple[str, str]:
    found = service.client.get(url).json()
    return found["state"], found["state_reason"] or ""


def test_four_gigabytes_quarantine_their_table(service):
    url, log = plain(service, "main.other.sparse")
    sparse(commit_file(log, 1), 4 * GIB)

    with attacked(service, lambda _: append(service, url)) as measured:
        measured.check(grown_mib=64)
    assert set(measured.answers) == {(503, "table-quarantined")}
    closed, why = state(service, url)
    assert closed == "quarantined"
    assert f"version 1, written by another writer, cannot be read: it has {4 * GIB} bytes" in why
    assert "max_log_file_bytes" in why


def test_behind_many_that_can_be_read(service):
    url, log = plain(service, "main.other.far")
    for version in range(1, 9):
        commit_file(log, version).write_text(json.dumps(add(f"month=5/{version}")) + "\n")
    sparse(commit_file(log, 9), 4 * GIB)

    with attacked(service, lambda _: append(service, url)) as measured:
        measured.check(grown_mib=64)
    assert set(measured.answers) == {(503, "table-quarantined")}
    assert "version 9, written by another writer" in state(service, url)[1]
    assert service.client.get(url).json()["latest_version"] == 8
    released = service.client.post(f"{url}/release", json={})
    assert (released.status_code, released.json()["code"]) == (422, "broken-log")
    assert "max_log_file_bytes" in released.json()["detail"]


@pytest.mark.parametrize("call", ["register", "rebuild", "verify", "read"])
def test_other_calls_that_read_the_log(service, call):
    url, log = plain(service, f"main.other.by_{call}")
    for _ in range(2):
        assert append(service, url)[0] == 201
    if call == "register":
        folder = log.parent.with_name(f"copied_{call}")
        shutil.copytree(log.parent, folder)
        log = folder / "_delta_log"
    sparse(commit_file(log, 1), 4 * GIB)

    def attack(_):
        match call:
            case "register":
                body = {"name": "main.other.copied", "location": log.parent.as_uri()}
                answer = service.client.post(f"{service.api}/tables/register", json=body)
            case "rebuild":
                answer = service.client.post(f"{url}/rebuild", json={})
            case "verify":
                answer = service.client.get(f"{url}/verify")
            case _:
                answer = service.client.get(f"{url}/commits/1")
        return answer.status_code, answer.text

    with attacked(service, attack) as measured:
        measured.check(grown_mib=64)
    expected = {"register": 422, "rebuild": 422, "verify": 200, "read": 404}[call]
    for status, text in measured.answers:
        assert status == expected
        assert str(4 * GIB) in text


def test_ten_million_actions(service):
    url, log = plain(service, "main.other.lines")
    with commit_file(log, 1).open("wb") as file:
        for _ in range(100):
            file.write(b'{"a":1}\n' * 100_000)

    with attacked(service, lambda _: append(service, url)) as measured:
        measured.check(grown_mib=512)
    # Whoever comes while it is read, a step at a time, waits for as long as proposals wait.
    told = set(measured.answers)
    assert (503, "table-quarantined") in told
    assert told <= {(503, "table-quarantined"), (503, "index-unavailable")}
    assert "more than 1000000 actions" in state(service, url)[1]


def test_a_line_that_does_not_end(service):
    url, log = plain(service, "main.other.endless")
    commit_file(log, 1).write_bytes(b'{"a":[' + b"1," * (32 * MIB))

    with attacked(service, lambda _: append(service, url)) as measured:
        measured.check(grown_mib=128)
    assert set(measured.answers) == {(503, "table-quarantined")}
    assert "a line has more than" in state(service, url)[1]


def test_a_large_one_is_a_version_like_others(service):
    """Fifty thousand files with much of a text, in a file beyond what is held as it is."""
    url, log = plain(service, "main.other.large")
    lines = [
        json.dumps(add(f"month=5/{number:08}", tags={"a": "b" * 600}), separators=(",", ":"))
        for number in range(50_000)
    ]
    content = ("\n\n".join(lines)).encode()
    assert len(content) > 32 * MIB
    commit_file(log, 1).write_bytes(content)

    def attack(_: Service) -> bool:
        """Whether it landed. Reading the file takes seconds, and more than a request may where the
        machine has other work, too."""
        answer = append(service, url)
        assert answer[0] in (201, 503), answer
        return answer[0] == 201

    with attacked(service, attack) as measured:
        measured.check(grown_mib=400)
    landed = measured.answers.count(True)
    until = time.monotonic() + PATIENCE_S
    while not landed and time.monotonic() < until:
        landed += attack(service)
    assert landed
    assert service.client.get(f"{url}/commits/1").content == content
    found = service.client.get(f"{url}/verify").json()
    assert found["differences"] == []
    rebuilt = service.client.post(f"{url}/rebuild", json={}, timeout=120).json()
    assert rebuilt["num_files"] == 50_000 + landed
