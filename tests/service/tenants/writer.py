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
from tests.service.api.http.connections.requests_by_hand import JSON_TYPE

PATIENCE_S = 120.0
CREATED = 201


Call = Literal["commits", "updates", "scan"]
"""Blind appends, commits that read what a condition of some 200 characters is true of, and scans of
one."""
CONDITION = " or ".join(f"(month = 6 and month <> {number})" for number in range(7, 15))


@dataclass(frozen=True, slots=True)
class Answered:
    """A call's time in seconds, and the status of its answer, 0 for none."""

    seconds: float
    status: int


def run(api: str, table: str, headers: dict[str, str], pipe: Connection) -> None:
    """Make the call that it is told, one after the other, and tell of each, until told anything
    more; then tell None."""
    writer = _Writer(f"{api}/tables/{table}", headers)
    while True:
        try:
            call: Call = pipe.recv()
        except EOFError:
            return
        while not pipe.poll():
            pipe.send(writer.answered(call))
        pipe.recv()
        pipe.send(None)


class _Writer:
    def __init__(self, url: str, headers: dict[str, str]) -> None:
        self._url = urlsplit(url)
        self._headers = JSON_TYPE | headers
        self._numbers = itertools.count()
        self._version = 0

    def answered(self, call: Call) -> Answered:
        assert self._url.hostname is not None
        connection = http.client.HTTPConnection(
            self._url.hostname, self._url.port, timeout=PATIENCE_S
        )
        path = f"{self._url.path}/{'scan' if call == 'scan' else 'commits'}"
        body = json.dumps(self._body(call, next(self._numbers)))
        begun = time.monotonic()
        try:
            connection.request("POST", path, body, self._headers)
            answer = connection.getresponse()
            found = answer.read()
            status = answer.status
        except (OSError, http.client.HTTPException):
            status = 0
        finally:
            connection.close()
        seconds = time.monotonic() - begun
        if status == CREATED:
            self._version = json.loads(found)["version"]
        return Answered(seconds, status)

    def _body(self, call: Call, number: int) -> dict[str, Any]:
        adding = add(f"month=5/{number}.parquet")
        if call == "commits":
            return proposal(adding)
        if call == "updates":
            # Another one each time, as of a job that says the day.
            reads = {"predicates": [f"{CONDITION} or month = {number + 100}"]}
            return proposal(adding, read_version=self._version, reads=reads)
        # Of the same size however many commits there were.
        return {"version": 0, "predicates": ["month = 5"]}
