"""Connections that never send a request, or never read its answer, stop nobody's commits."""

import os
import select
import socket
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest

from tests.builders.flights import add, proposal
from tests.service.tenants.rig import MIB, Service, attacked
from tidegate_service.core.context import SCANNED_METADATA_BYTES, SCANS, SCANS_BEGUN

SENDING = 200
READING = 2 * SCANS
GIVE_UP_S = 60.0
GROWN_MIB = 120
ANSWER_MIB = 3
PROPERTIES = 60
"""Of 64 KiB each."""
BEGUN_MIB = 128
"""What a scan that begins makes of them, for a moment."""
ENDED = select.POLLRDHUP | select.POLLHUP | select.POLLERR


@pytest.fixture(scope="module")
def deadline_s() -> float:
    return 5.0


def held(service: Service, connections: int, *sent: bytes) -> None:
    """Open so many connections, send one of these on each, and read nothing; over once the service
    has ended each of them."""
    parts = urlsplit(service.api)
    with ExitStack() as opened:
        poll = select.poll()
        left: set[int] = set()
        for number in range(connections):
            connection = opened.enter_context(socket.socket())
            connection.settimeout(GIVE_UP_S)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect((parts.hostname, parts.port))
            connection.sendall(sent[number % len(sent)])
            # Not for what it could read.
            poll.register(connection, ENDED)
            left.add(connection.fileno())
        while left:
            ended = {file for file, _ in poll.poll(GIVE_UP_S * 1000)}
            assert ended, f"{len(left)} connections are open still"
            for file in ended:
                poll.unregister(file)
            left -= ended


HEAD = b"POST /api/v1/tables/main.other.none/commits HTTP/1.1\r\nHost: localhost\r\n"
BODY = b'Content-Type: application/json\r\nContent-Length: 60000\r\n\r\n{"a": "'


def test_that_never_send(service):
    """Nothing, a part of a head, or a part of a body."""
    with attacked(
        service, lambda service: held(service, SENDING, b"", HEAD, HEAD + BODY)
    ) as measured:
        measured.check(grown_mib=GROWN_MIB)


def test_that_never_read(service):
    """No more answers are made at a time than scans."""
    url = service.create("main.other.unread")
    body = proposal(add(tags={"a": os.urandom(ANSWER_MIB * MIB // 2).hex()}))
    service.client.post(f"{url}/commits", json=body).raise_for_status()
    path = f"{urlsplit(url).path}/commits/1"
    asked = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() * 2
    with attacked(service, lambda service: held(service, READING, asked)) as measured:
        measured.check(grown_mib=SCANS * ANSWER_MIB + GROWN_MIB)


def test_that_never_read_what_a_table_is(service):
    """A scan's answer begins with the table's metadata."""
    properties = {f"p{number}": os.urandom(32 * 1024).hex() for number in range(PROPERTIES)}
    url = service.create("main.other.wide", properties=properties)
    path = f"{urlsplit(url).path}/scan"
    # Those that are refused are to end, too.
    head = "Host: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
    asked = f"POST {path} HTTP/1.1\r\n{head}Content-Length: 2\r\n\r\n{{}}".encode()
    with attacked(service, lambda service: held(service, SCANS, asked)) as measured:
        measured.check(grown_mib=SCANNED_METADATA_BYTES / MIB + SCANS_BEGUN * BEGUN_MIB)
