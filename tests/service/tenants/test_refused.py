"""What is refused at once costs its own principal's time: two hundred connections that ask again as
soon as they are answered leave another one's commits as they were."""

import json
import re
import selectors
import socket
import time
from collections import Counter
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.builders.flights import add, proposal
from tests.service.tenants.rig import Service, attacked

CONNECTIONS = 200
ROUND_S = 3.0
GIVE_UP_S = 30.0
GROWN_MIB = 80

_ANSWER = re.compile(rb"HTTP/1\.1 (\d+) .*?\r\ncontent-length: (\d+)\r\n", re.DOTALL | re.I)


@pytest.fixture(scope="module")
def limits() -> dict[str, Any]:
    return {"auth": "tokens"}


def flood(address: tuple[str, int], asked: bytes, connections: int) -> Counter[int]:
    """How often each status was answered within `ROUND_S`, on so many connections."""
    told: Counter[int] = Counter()
    with selectors.DefaultSelector() as waiting:
        for _ in range(connections):
            connection = socket.create_connection(address, timeout=GIVE_UP_S)
            connection.sendall(asked)
            waiting.register(connection, selectors.EVENT_READ, bytearray())
        until = time.monotonic() + ROUND_S
        while (now := time.monotonic()) < until:
            for key, _ in waiting.select(until - now):
                connection, answer = key.fileobj, key.data
                assert isinstance(connection, socket.socket)
                more = connection.recv(65536)
                assert more, "the service ended a connection"
                answer += more
                if (status := whole(answer)) is not None:
                    told[status] += 1
                    answer.clear()
                    connection.sendall(asked)
        for key in list(waiting.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.close()
    return told


def whole(answer: bytearray) -> int | None:
    """The status, once all of the answer is there."""
    head, end, body = answer.partition(b"\r\n\r\n")
    found = _ANSWER.match(head + b"\r\n")
    if not end or found is None or len(body) < int(found[2]):
        return None
    return int(found[1])


def request(service: Service, path: str, body: object) -> bytes:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    parts = urlsplit(service.api)
    return (
        f"POST {parts.path}/{path} HTTP/1.1\r\nHost: {parts.netloc}\r\n"
        f"Authorization: {service.client.headers['authorization']}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    ).encode() + content


@pytest.fixture(scope="module")
def refusing(service: Service) -> str:
    return service.create("main.other.refused")


REFUSED: dict[str, tuple[int, str, object]] = {
    "none": (404, "tables/main.other.none/commits", proposal(add("a"))),
    "forbidden": (403, "tables", {"name": "main.theirs.mine", "schema": {}}),
    "no-json": (422, "tables/main.other.refused/commits", b'{"actions": ['),
    "invalid": (422, "tables/main.other.refused/commits", proposal(add("../a"))),
}


@pytest.mark.parametrize("what", REFUSED)
def test_flood_of(service, elsewhere, refusing, what):
    status, path, body = REFUSED[what]
    parts = urlsplit(service.api)
    assert parts.hostname is not None
    assert parts.port is not None
    address, asked = (parts.hostname, parts.port), request(service, path, body)

    def attack(_: Service) -> Counter[int]:
        return elsewhere.submit(flood, address, asked, CONNECTIONS).result()

    with attacked(service, attack) as measured:
        measured.check(grown_mib=GROWN_MIB)
    told = {answered for answers in measured.answers for answered in answers}
    assert status in told <= {status, 429}
