"""Bodies and raw requests that tests send."""

import socket
from urllib.parse import urlsplit

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
