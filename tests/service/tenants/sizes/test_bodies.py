"""Bodies that are small and become large: they are counted before anything is made of them."""

import gzip
import json
import random

import httpx
import pytest

from tests.builders.flights import add, table_body
from tests.service.api.http.connections.requests_by_hand import JSON_TYPE, NDJSON_TYPE
from tests.service.tenants.rig import MIB, attacked
from tidegate_service.api.bodies.encodings import MAX_RATIO

LONG = 57 * MIB
CUT_OFF = (0, "")
LATE = {(503, "deadline-exceeded"), CUT_OFF}
"""Where a slow machine takes longer for such a body than the deadline, or for the rest of it than
the service goes on to read."""


@pytest.fixture(scope="module")
def table(service):
    return service.create("main.other.bodies")


def filled(start: bytes, element: bytes, end: bytes, size: int) -> bytes:
    """About `size` bytes of one element over and over, between a body's start and end."""
    return start + element * ((size - len(start) - len(end)) // len(element)) + end


def proposal_of(element: bytes, *, size: int = LONG, key: bytes = b"actions") -> bytes:
    start = b'{"operation":"WRITE","read_version":0,"' + key + b'":['
    return filled(start, element + b",", element + b"]}", size)


def packed(body: bytes) -> bytes:
    """As gzip, with so much of what does not compress that it may inflate to this."""
    noise = random.Random(1).randbytes(len(body) // MAX_RATIO // 2).hex().encode()
    return gzip.compress(body[:-1] + b',"user_metadata":"' + noise + b'"}', 6)


def posted(service, url: str, body: bytes, headers: dict[str, str]) -> tuple[int, str]:
    try:
        answer = service.client.post(url, content=body, headers=headers)
    except (httpx.NetworkError, httpx.RemoteProtocolError):
        return CUT_OFF
    return answer.status_code, answer.json().get("code", "")


def check_refused(answers, status: int, code: str) -> None:
    """Whoever was answered in time was told this."""
    assert (status, code) in answers
    assert set(answers) <= {(status, code), *LATE}


@pytest.mark.parametrize(
    ("element", "key"), [(b"1", b"actions"), (b"{}", b"actions"), (b"[]", b"\\u0061ctions")]
)
def test_actions_are_counted_before_they_are_made(service, table, element, key):
    body = proposal_of(element, key=key)

    def attack(_):
        return posted(service, f"{table}/commits", body, JSON_TYPE)

    with attacked(service, attack) as measured:
        # The body is there twice while it is put together, and what came ahead of it.
        measured.check(grown_mib=4 * 64)
    check_refused(measured.answers, 413, "too-large")


def test_as_few_as_are_not_refused_at_once(service, table):
    # Seven million numbers: less than are counted, and more than there may be actions.
    body = proposal_of(b"[1,1,1]", size=14 * MIB)

    def attack(_):
        return posted(service, f"{table}/commits", body, JSON_TYPE)

    with attacked(service, attack) as measured:
        measured.check(grown_mib=3 * 64)
    check_refused(measured.answers, 422, "invalid-action")


def test_those_of_two_compressed_bodies(service, table):
    body = packed(proposal_of(b"{}"))
    assert len(body) < MIB

    def attack(_):
        return posted(service, f"{table}/commits", body, JSON_TYPE | {"Content-Encoding": "gzip"})

    with attacked(service, attack, at_once=2) as measured:
        measured.check(grown_mib=8 * 64)
    check_refused(measured.answers, 413, "too-large")


def test_those_of_a_table_to_create(service):
    start = json.dumps(table_body("main.other.never"))[:-1].encode() + b',"actions":['
    body = filled(start, b"{},", b"{}]}", LONG)

    def attack(_):
        return posted(service, f"{service.api}/tables", body, JSON_TYPE)

    with attacked(service, attack) as measured:
        measured.check(grown_mib=4 * 64)
    check_refused(measured.answers, 413, "too-large")


def test_the_rest_of_a_body(service, table):
    start = b'{"operation":"WRITE","operation_parameters":{"a":['
    body = filled(start, b"[],", b'[]]},"actions":[]}', 4 * MIB - 64)

    def attack(_):
        return posted(service, f"{table}/commits", body, JSON_TYPE)

    with attacked(service, attack, at_once=4) as measured:
        # As the test above: what four bodies and their answers leave in the allocator.
        measured.check(grown_mib=4 * 64)
    check_refused(measured.answers, 413, "too-large")


@pytest.mark.parametrize("kind", [b"commitInfo", b"what"])
def test_a_line_of_a_stream(service, table, kind):
    line = filled(b'{"' + kind + b'":{"a":[', b"[],", b"[]]}}\n", 4 * MIB - 64)
    body = b'{"operation":"WRITE","read_version":0}\n' + line * 4

    def attack(_):
        return posted(service, f"{table}/commits", body, NDJSON_TYPE)

    with attacked(service, attack, at_once=4) as measured:
        # What lines of 4 MiB leave in the allocator, of as many rounds as were measured.
        measured.check(grown_mib=6 * 64)
    check_refused(measured.answers, 422, "invalid-action")


@pytest.mark.parametrize("line", [b'{"a":1}\n', b"\n"], ids=["actions", "blank"])
def test_ten_million_lines(service, table, line):
    body = (
        gzip.compress(b'{"operation":"WRITE","read_version":0}\n' + line * 10_000_000, 1)
        if line == b"\n"
        else b'{"operation":"WRITE","read_version":0}\n' + line * 10_000_000
    )

    headers = NDJSON_TYPE | ({"Content-Encoding": "gzip"} if line == b"\n" else {})

    def attack(_):
        return posted(service, f"{table}/commits", body, headers)

    with attacked(service, attack) as measured:
        measured.check(grown_mib=800)
    check_refused(measured.answers, 413, "too-large")


def test_partition_values_of_a_megabyte(service, table):
    values = {"month": "1"} | {f"column{number}": "x" for number in range(40_000)}
    action = add("month=1/a.parquet")
    lines = []
    for number in range(48):
        action["add"]["path"] = f"month=1/{number}.parquet"
        action["add"]["partitionValues"] = values | {"other": str(number)}
        lines.append(json.dumps(action, separators=(",", ":")).encode() + b"\n")
    body = b'{"operation":"WRITE","read_version":0}\n' + b"".join(lines)

    def attack(_):
        return posted(service, f"{table}/commits", body, NDJSON_TYPE)

    with attacked(service, attack, at_once=2) as measured:
        measured.check(grown_mib=1024)
    found = {status for status, _ in measured.answers}
    assert found & {422, 429}
    assert found <= {422, 429, *(status for status, _ in LATE)}
