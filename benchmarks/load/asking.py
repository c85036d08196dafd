"""One connection that asks and waits: for what is measured a request at a time."""

import http.client
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median
from types import TracebackType
from typing import Self

import msgspec

from benchmarks.rig.service import Service

JSON = "application/json"
NDJSON = "application/x-ndjson"
# A commit of a million actions on a busy machine.
_TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True)
class Asked:
    """An answer with a good status; `seconds` from sending to its last byte."""

    content: bytes
    seconds: float


class Connection:
    """A connection to a service that is kept open. Raises `RuntimeError` for an answer with
    another status than asked for."""

    def __init__(self, service: Service) -> None:
        host, port = service.address
        self._http = http.client.HTTPConnection(host, port, timeout=_TIMEOUT_S)

    def __enter__(self) -> Self:
        self._http.connect()
        self._http.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.close()

    def post(
        self,
        path: str,
        body: bytes,
        *,
        expected: int,
        kind: str = JSON,
        accept: str = JSON,
    ) -> Asked:
        sent = {"Content-Type": kind, "Accept": accept}
        started = time.perf_counter()
        self._http.request("POST", path, body, sent)
        return self._answer(path, expected, started)

    def post_file(self, path: str, file: Path, *, expected: int, kind: str) -> Asked:
        """The same with a file's bytes, which this process does not touch."""
        started = time.perf_counter()
        self._http.putrequest("POST", path)
        self._http.putheader("Content-Type", kind)
        self._http.putheader("Content-Length", str(file.stat().st_size))
        self._http.endheaders()
        with file.open("rb") as content:
            self._http.sock.sendfile(content)
        return self._answer(path, expected, started)

    def _answer(self, path: str, expected: int, started: float) -> Asked:
        answer = self._http.getresponse()
        content = answer.read()
        seconds = time.perf_counter() - started
        if answer.status != expected:
            text = content[:2000].decode(errors="replace")
            raise RuntimeError(f"POST {path}: expected {expected}, found {answer.status}: {text}")
        return Asked(content, seconds)


def version_of(asked: Asked) -> int:
    """The version that a commit landed as."""
    found = msgspec.json.decode(asked.content)["version"]
    if not isinstance(found, int):
        raise TypeError(f"expected a version, found {found!r}")
    return found


def p50s(askers: Sequence[Callable[[], float]], *, turns: int, seed: int) -> list[float]:
    """The median seconds of each, asked one after the other so many times. The order is another
    one each turn: what one leaves behind for later is not always the same one's to wait for."""
    seconds: list[list[float]] = [[] for _ in askers]
    places = list(range(len(askers)))
    chance = Random(seed)
    for _ in range(turns):
        chance.shuffle(places)
        for place in places:
            seconds[place].append(askers[place]())
    return [median(found) for found in seconds]
