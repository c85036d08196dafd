"""A well-behaved writer, or reader, as a process of its own: no attack takes the interpreter from
it."""

import http.client
import itertools
import json
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Literal
from urllib.parse import urlsplit

from tests.builders.flights import add, proposal
from tests.service.api.http.requests_by_hand import JSON_TYPE

PATIENCE_S = 120.0


Call = Literal["commits", "scan"]


@dataclass(frozen=True, slots=True)
class Answered:
    """A call's time in seconds, and the status of its answer, 0 for none."""

    seconds: float
    status: int


def run(api: str, table: str, headers: dict[str, str], pipe: Connection) -> None:
    """Make the call that it is told, one after the other, and tell of each, until told anything
    more; then tell None."""
    numbers = itertools.count()
    while True:
        try:
            call: Call = pipe.recv()
        except EOFError:
            return
        while not pipe.poll():
            pipe.send(_answered(api, table, headers, call, _body(call, next(numbers))))
        pipe.recv()
        pipe.send(None)


def _body(call: Call, number: int) -> dict[str, Any]:
    if call == "commits":
        return proposal(add(f"month=5/{number}.parquet"))
    # Of the same size however many commits there were.
    return {"version": 0, "predicates": ["month = 5"]}


def _answered(
    api: str, table: str, headers: dict[str, str], call: Call, body: dict[str, Any]
) -> Answered:
    parts = urlsplit(api)
    assert parts.hostname is not None
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=PATIENCE_S)
    path = f"{parts.path}/tables/{table}/{call}"
    begun = time.monotonic()
    try:
        connection.request("POST", path, json.dumps(body), JSON_TYPE | headers)
        answer = connection.getresponse()
        answer.read()
        status = answer.status
    except (OSError, http.client.HTTPException):
        status = 0
    finally:
        connection.close()
    return Answered(time.monotonic() - begun, status)
