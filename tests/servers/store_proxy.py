"""A proxy in front of the S3 server that loses, delays and forges answers on purpose.

It passes requests on unchanged (their signatures hold, as they name the proxy as their host)
until a fault is scripted. Each scripted fault meets the next request that it matches, once;
faults are used in the order in which they were scripted.
"""

import http.client
import re
import socket
import threading
from collections import deque
from dataclasses import dataclass
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

import obstore
from obstore.store import S3Store

from demo.s3_server import S3Server

COMMITS = r"/[0-9]{20}\.json$"
WAIT_S = 30.0
_ERROR = b"<?xml version='1.0'?><Error><Code>%s</Code><Message>forged</Message></Error>"


class StoreFault(Enum):
    """What happens to one request."""

    ANSWER_LOST = "applied, and the connection is closed without an answer"
    ANSWER_HELD = "applied, and nothing comes back until `release`"
    ERROR_AFTER = "applied, and answered with a 500"
    CUT = "applied, and the connection is closed in the middle of the answer"
    LOST = "not applied, and the connection is closed without an answer"
    HELD = "kept; applied at `release`, when nobody waits for an answer any more"
    SLOW = "kept; applied and answered at `release`"
    SLOW_DOWN = "not applied, and answered with a 503"
    CONFLICT = "not applied, and answered with a 409"
    DENIED = "not applied, and answered with a 403"
    CONDITION_IGNORED = "applied although the name is taken"


_FORGED = {
    StoreFault.ERROR_AFTER: (500, b"InternalError"),
    StoreFault.SLOW_DOWN: (503, b"SlowDown"),
    StoreFault.CONFLICT: (409, b"ConditionalRequestConflict"),
    StoreFault.DENIED: (403, b"AccessDenied"),
}
_NOT_APPLIED = {
    StoreFault.LOST,
    StoreFault.HELD,
    StoreFault.SLOW_DOWN,
    StoreFault.CONFLICT,
    StoreFault.DENIED,
}


@dataclass(frozen=True, slots=True)
class Seen:
    """A request as it came; `path` with its query, `fault` what happened to it, if anything."""

    method: str
    path: str
    fault: StoreFault | None


@dataclass(frozen=True, slots=True)
class _Scripted:
    fault: StoreFault
    method: str
    path: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    headers: list[tuple[str, str]]
    body: bytes


class StoreProxy:
    """A context manager; use `endpoint` or `storage_options` instead of the server's own.

    `seen` are the requests that came, in order; `sent_bytes` counts the bodies of all answers.
    """

    def __init__(self, server: S3Server) -> None:
        self._server = server
        self._script: deque[_Scripted] = deque()
        self._always: _Scripted | None = None
        self._lock = threading.Condition()
        self._held = 0
        self._released = threading.Event()
        self.seen: list[Seen] = []
        self.sent_bytes = 0
        self._listener = _Listener(self)
        self._thread = threading.Thread(
            target=self._listener.serve_forever, args=(0.02,), daemon=True
        )

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._listener.server_port}"

    @property
    def storage_options(self) -> dict[str, str]:
        return {**self._server.storage_options, "aws_endpoint": self.endpoint}

    def script(self, *faults: StoreFault, method: str = "PUT", path: str = COMMITS) -> None:
        """Use each fault for the next request of this method whose path (with its query) has
        the pattern."""
        with self._lock:
            self._script.extend(_Scripted(fault, method, re.compile(path)) for fault in faults)

    def always(self, fault: StoreFault, *, method: str = "PUT", path: str = COMMITS) -> None:
        """Use the fault for every such request from now on that nothing else is scripted for."""
        with self._lock:
            self._always = _Scripted(fault, method, re.compile(path))

    def heal(self) -> None:
        """Forget what is scripted, and let go of what is held."""
        with self._lock:
            self._script.clear()
            self._always = None
        self.release()

    def count(self, method: str, path: str = COMMITS) -> int:
        """How many such requests have come."""
        with self._lock:
            return sum(s.method == method and bool(re.search(path, s.path)) for s in self.seen)

    def wait_held(self, count: int = 1) -> None:
        """Until this many requests are held."""
        with self._lock:
            assert self._lock.wait_for(lambda: self._held >= count, WAIT_S), "nothing was held"

    def release(self) -> None:
        """Let go of what is held and return once it has been applied."""
        self._released.set()
        with self._lock:
            assert self._lock.wait_for(lambda: self._held == 0, WAIT_S), "the server is stuck"
        self._released.clear()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._released.set()
        self._listener.shutdown()
        self._listener.server_close()
        self._thread.join(WAIT_S)

    def fault_for(self, method: str, path: str) -> StoreFault | None:
        with self._lock:
            found = None
            for scripted in (*self._script, self._always):
                if scripted and scripted.method == method and scripted.path.search(path):
                    found = scripted
                    break
            if found is not None and found is not self._always:
                self._script.remove(found)
            fault = found.fault if found else None
            self.seen.append(Seen(method, path, fault))
            return fault

    def hold(self) -> None:
        with self._lock:
            self._held += 1
            self._lock.notify_all()
        self._released.wait()

    def held_is_over(self) -> None:
        with self._lock:
            self._held -= 1
            self._lock.notify_all()

    def forward(
        self, method: str, path: str, headers: list[tuple[str, str]], body: bytes
    ) -> _Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self._server.port, timeout=WAIT_S)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in headers:
                connection.putheader(name, value)
            connection.endheaders(body or None)
            answer = connection.getresponse()
            return _Answer(answer.status, answer.getheaders(), answer.read())
        finally:
            connection.close()

    def overwrite(self, path: str, body: bytes) -> None:
        """What a store does that does not know conditional writes."""
        _, bucket, key = path.split("/", 2)
        obstore.put(S3Store(bucket, config=self._server.storage_options), key, body)


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    # More than come at once, so that none is refused.
    request_queue_size = 128

    def __init__(self, proxy: StoreProxy) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.proxy = proxy


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Listener

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        proxy = self.server.proxy
        fault = proxy.fault_for(self.command, self.path)
        if fault is StoreFault.HELD:
            proxy.hold()
            try:
                self._forward(body)
            finally:
                proxy.held_is_over()
            self._hang_up()
            return
        if fault is StoreFault.SLOW:
            proxy.hold()
            try:
                self._answer(self._forward(body))
            finally:
                proxy.held_is_over()
            return
        answer = None if fault in _NOT_APPLIED else self._forward(body)
        if fault is StoreFault.CONDITION_IGNORED and answer and answer.status == 412:
            proxy.overwrite(self.path, body)
            answer = _Answer(200, [("ETag", '"overwritten"')], b"")
        if fault in _FORGED:
            status, code = _FORGED[fault]
            self._answer(_Answer(status, [("Content-Type", "application/xml")], _ERROR % code))
        elif fault is StoreFault.ANSWER_HELD:
            proxy.hold()
            proxy.held_is_over()
            self._hang_up()
        elif answer is None or fault is StoreFault.ANSWER_LOST:
            self._hang_up()
        else:
            self._answer(answer, cut=fault is StoreFault.CUT)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _handle

    def _forward(self, body: bytes) -> _Answer:
        headers = list(self.headers.items())
        return self.server.proxy.forward(self.command, self.path, headers, body)

    def _answer(self, answer: _Answer, *, cut: bool = False) -> None:
        self.server.proxy.sent_bytes += len(answer.body)
        self.send_response_only(answer.status)
        hop_by_hop = ("connection", "transfer-encoding", "content-length")
        for name, value in answer.headers:
            if name.lower() not in hop_by_hop:
                self.send_header(name, value)
        length = str(len(answer.body))
        if self.command == "HEAD":
            length = next((v for n, v in answer.headers if n.lower() == "content-length"), "0")
        self.send_header("Content-Length", length)
        self.end_headers()
        self.wfile.write(answer.body[: len(answer.body) // 2] if cut else answer.body)
        if cut:
            self._hang_up()

    def _hang_up(self) -> None:
        self.close_connection = True
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            # The client was first, as it is once it has waited long enough.
            return

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: `StoreProxy.seen` says what came."""
