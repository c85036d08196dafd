"""A proxy in front of the service that does what a network does to the answers of commits."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

_KEPT = ("authorization", "content-type", "accept")


class LossyProxy:
    """Passes requests on. `lose` many of the next commits are passed on, too, and answered by a
    500, as a gateway does that did not wait for the answer; while they are `held`, they are not
    passed on. `seen` are the statuses of all commits as their client saw them."""

    def __init__(self, url: str) -> None:
        self.lose = 0
        self.seen: list[int] = []
        self._open, self._arrived = threading.Event(), threading.Event()
        self._open.set()
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _pass_on(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                is_commit = self.command == "POST" and self.path.rpartition("/")[0].endswith(
                    "/tables"
                )
                if is_commit:
                    proxy._arrived.set()
                    proxy._open.wait()
                headers = {n: v for n, v in self.headers.items() if n.lower() in _KEPT}
                answer = httpx.request(
                    self.command, url + self.path, content=body, headers=headers, timeout=60
                )
                status, content = answer.status_code, answer.content
                if is_commit:
                    if proxy.lose:
                        proxy.lose -= 1
                        status, content = 500, b"{}"
                    proxy.seen.append(status)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_HEAD = do_DELETE = _pass_on

            def log_message(self, format: str, *args: Any) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    @contextmanager
    def held(self) -> Iterator[threading.Event]:
        """Keep commits at the door; the event says that one is there."""
        self._arrived.clear()
        self._open.clear()
        try:
            yield self._arrived
        finally:
            self._open.set()


@contextmanager
def lossy_proxy(url: str) -> Iterator[LossyProxy]:
    """One in front of the service at `url`."""
    proxy = LossyProxy(url)
    thread = threading.Thread(target=proxy.server.serve_forever, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.server.shutdown()
        thread.join()
        proxy.server.server_close()
