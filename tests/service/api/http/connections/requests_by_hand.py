"""Bodies and raw requests that tests send."""

import socket
from urllib.parse import urlsplit

import httptools

JSON_TYPE = {"Content-Type": "application/json"}
NDJSON_TYPE = {"Content-Type": "application/x-ndjson"}


def exchange(url: str, sent: bytes, *, timeout_s: float = 20.0) -> bytes:
    """What the server sends back on a connection of its own until it closes it."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=timeout_s) as connection:
        connection.sendall(sent)
        received = b""
        while chunk := connection.recv(65536):
            received += chunk
        return received


def in_turn(url: str, *requests: bytes, piece: int = 1 << 20) -> list[int]:
    """The statuses of the requests' answers on one connection. Each request is sent after the
    answer to the one before, in pieces of so many bytes."""
    parts = urlsplit(url)
    found: list[int] = []
    with socket.create_connection((parts.hostname, parts.port), timeout=60) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for request in requests:
            for start in range(0, len(request), piece):
                connection.sendall(request[start : start + piece])
            found.append(_status(connection))
    return found


def _status(connection: socket.socket) -> int:
    """Of one answer, which is read to its end."""
    whole: list[int] = []

    class Answer:
        def on_message_complete(self) -> None:
            whole.append(parser.get_status_code())

    parser = httptools.HttpResponseParser(Answer())
    while not whole:
        received = connection.recv(65536)
        assert received, "the connection ended before the answer did"
        parser.feed_data(received)
    (status,) = whole
    return status
