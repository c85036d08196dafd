"""Requests that ask for another protocol are answered in the one that they came in.

Every request of a JVM's HTTP client over plain HTTP asks for HTTP/2 (`Upgrade: h2c`). A server may
pass over that (RFC 9110, 7.8). httptools stops at the end of such a head, and takes what follows
for the other protocol, so the body would be lost. Here the parser is followed by one that reads on
from there.
"""

import asyncio
from typing import Any, cast

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

_FRAMING = (b"content-length", b"transfer-encoding")


class _Callbacks:
    """What a parser calls: those of the protocol, but for the end of a message whose body is still
    to come, and for a head that the protocol knows already."""

    def __init__(self, protocol: "UpgradeFreeProtocol", *, in_body: bool) -> None:
        self._protocol = protocol
        self._knows_head = in_body
        self.on_chunk_header = protocol.on_chunk_header
        self.on_body = protocol.on_body

    def on_message_begin(self) -> None:
        if not self._knows_head:
            self._protocol.on_message_begin()

    def on_url(self, url: bytes) -> None:
        if not self._knows_head:
            self._protocol.on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._knows_head:
            self._protocol.on_header(name, value)

    def on_headers_complete(self) -> None:
        if self._knows_head:
            self._knows_head = False
        else:
            self._protocol.on_headers_complete()

    def on_message_complete(self) -> None:
        if not self._protocol.reader.is_interrupted():
            self._protocol.on_message_complete()


class BodyReader:
    """httptools' parser of requests, which goes on after a head that asks for an upgrade."""

    def __init__(self, protocol: "UpgradeFreeProtocol") -> None:
        self._protocol = protocol
        self._begin(in_body=False)

    def _begin(self, *, in_body: bool) -> None:
        self._parser = httptools.HttpRequestParser(_Callbacks(self._protocol, in_body=in_body))
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)

    def feed_data(self, data: bytes) -> None:
        """As httptools', but for `HttpParserUpgrade`, which is never raised."""
        while True:
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                data = data[upgrade.args[0] :]
            else:
                return
            framing = self._framing()
            self._begin(in_body=bool(framing))
            if framing:
                self._parser.feed_data(b"POST / HTTP/1.1\r\n" + b"".join(framing) + b"\r\n")
            if not data:
                return

    def is_interrupted(self) -> bool:
        """Whether the parser stops before a body, which another one will read."""
        return bool(self._parser.should_upgrade()) and bool(self._framing())

    def _framing(self) -> list[bytes]:
        """The headers of the request that say how long its body is, as lines."""
        return [
            b"%b: %b\r\n" % (name, value)
            for name, value in self._protocol.headers
            if name in _FRAMING
        ]

    def get_http_version(self) -> str:
        return str(self._parser.get_http_version())

    def get_method(self) -> bytes:
        return bytes(self._parser.get_method())

    def should_keep_alive(self) -> bool:
        return bool(self._parser.should_keep_alive())

    def should_upgrade(self) -> bool:
        return False


class UpgradeFreeProtocol(HttpToolsProtocol):
    """uvicorn's protocol, with a parser that no request to upgrade stops."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.headers = []
        self.reader = BodyReader(self)
        self.parser = cast(httptools.HttpRequestParser, self.reader)

    def on_chunk_header(self) -> None:
        """A chunk of a body begins."""
