"""Connections that are opened and left at once, by another address, keep nobody else's out."""

import socket
import struct
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.service.tenants.rig import Service, attacked

ELSEWHERE = "127.0.0.2"
CONNECTIONS = 100
PIPELINED = 64
AT_ONCE = 8
DROPPED = struct.pack("ii", 1, 0)
GROWN_MIB = 120


@pytest.fixture(scope="module")
def limits() -> dict[str, Any]:
    return {"auth": "tokens"}


def test_without_a_request(service):
    """Each is dropped, with nothing that the attacker's system keeps of it: otherwise its own ports
    run out before anything here does."""
    url = urlsplit(service.api)

    def attack(_: Service) -> None:
        for _ in range(CONNECTIONS):
            with socket.socket() as connection:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, DROPPED)
                connection.connect((url.hostname, url.port))

    with attacked(service, attack, at_once=AT_ONCE) as measured:
        # Less than the second after which a system connects again that was not let in.
        measured.check(grown_mib=GROWN_MIB, slowest_s=1.0)


def test_with_many_requests_each(service):
    """Nobody reads an answer: whoever does this does not wait for the service."""
    url = urlsplit(service.create("main.other.left"))
    authorization = service.client.headers["authorization"]
    head = f"Host: {url.netloc}\r\nAuthorization: {authorization}\r\n\r\n"
    asked = f"GET {url.path} HTTP/1.1\r\n{head}".encode() * PIPELINED

    def attack(_: Service) -> None:
        for _ in range(CONNECTIONS):
            with socket.create_connection(
                (url.hostname, url.port), source_address=(ELSEWHERE, 0)
            ) as connection:
                connection.sendall(asked)

    with attacked(service, attack, at_once=AT_ONCE) as measured:
        measured.check(grown_mib=GROWN_MIB)
