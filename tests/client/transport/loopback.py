"""A real HTTP server on loopback that answers, or misbehaves, by a script."""

import json
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tidegate_protocol.base.problems import PROBLEM_MEDIA_TYPE, PROBLEM_TYPE_PREFIX


@dataclass(frozen=True)
class Reply:
    """Answer with this."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class OfService:
    """Answer with this as the service does, whose every answer carries the request's id and whose
    every refusal is a problem."""

    status: int
    body: dict[str, object] | bytes = b""
    headers: dict[str, str] = field(default_factory=dict)

    def reply(self, request_id: str) -> Reply:
        headers = {"X-Request-Id": request_id} | self.headers
        if isinstance(self.body, bytes):
            return Reply(self.status, self.body, headers)
        body, kind = self.body, "application/json"
        if self.status >= 400:
            kind = PROBLEM_MEDIA_TYPE
            fixed = {"status": self.status, "instance": request_id}
            body = {"type": f"{PROBLEM_TYPE_PREFIX}{body['code']}"} | body | fixed
        return Reply(self.status, json.dumps(body).encode(), {"Content-Type": kind} | headers)


@dataclass(frozen=True)
class Drop:
    """Read the whole request, then close the connection without a word."""


@dataclass(frozen=True)
class CutOff:
    """Announce a longer body than is sent, then close the connection."""

    body: bytes = b'{"half":'


@dataclass(frozen=True)
class Hold:
    """Read the whole request and answer nothing for as long as the server lives."""


Behaviour = Reply | OfService | Drop | CutOff | Hold


@dataclass(frozen=True)
class Seen:
    """A request as it arrived; header names in lower case, `peer` its connection's other end."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    peer: tuple[str, int]

    @property
    def json(self) -> object:
        return json.loads(self.body)


class Loopback:
    """Behaves by `script`, one entry a request; a request beyond it is answered with 599."""

    def __init__(self) -> None:
        self.script: deque[Behaviour] = deque()
        self.seen: list[Seen] = []
        self.closing = threading.Event()
        loopback = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Head and body leave in one packet; in two, the second waits for a delayed ACK.
            wbufsize = -1

            def handle_any(self) -> None:
                length = int(self.headers.get("content-length", "0"))
                headers = {name.lower(): value for name, value in self.headers.items()}
                body = self.rfile.read(length)
                loopback.seen.append(
                    Seen(self.command, self.path, headers, body, self.client_address)
                )
                script = loopback.script
                self.behave(script.popleft() if script else Reply(599, b"nothing is scripted"))

            def behave(self, behaviour: Behaviour) -> None:
                match behaviour:
                    case OfService():
                        self.behave(behaviour.reply(self.headers["x-request-id"]))
                    case Reply(status, body, headers):
                        self.reply(status, len(body), headers)
                        self.wfile.write(body)
                    case CutOff(body):
                        self.reply(200, len(body) + 100, {})
                        self.wfile.write(body)
                        self.close_connection = True
                    case Hold():
                        loopback.closing.wait()
                        self.close_connection = True
                    case Drop():
                        self.close_connection = True

            def reply(self, status: int, length: int, headers: dict[str, str]) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(length))
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()

            do_GET = do_POST = do_DELETE = handle_any

            def log_message(self, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def then(self, *behaviours: Behaviour) -> None:
        self.script.extend(behaviours)

    def answer(self, status: int, body: dict[str, object], **headers: str) -> None:
        """Script an answer of the service; `retry_after="1"` becomes the header `retry-after`."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.then(OfService(status, body, named))

    def out_of_service(self) -> None:
        """Script the answer after which no client waits any longer."""
        problem = {"code": "storage-unavailable", "status": 503, "detail": "it is so"}
        self.answer(503, problem, retry_after="3600")

    @property
    def calls(self) -> list[str]:
        """The last segment of each path that was asked for."""
        return [seen.path.rsplit("/", 1)[1] for seen in self.seen]

    def serve(self) -> None:
        self._server.serve_forever(poll_interval=0.01)

    def stop(self) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def loopback_server() -> Iterator[Loopback]:
    """A server in a thread of its own. Fails where the script was not played to its end."""
    server = Loopback()
    thread = threading.Thread(target=server.serve, name="loopback")
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join()
    assert not server.script, f"never asked for: {list(server.script)}"
