"""A socket between the index and Postgres that loses messages on purpose."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from enum import Enum
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

SOCKET = ".s.PGSQL.5432"
SYNC = b"S\0\0\0\4"


_READY = b"Z\0\0\0\5I"
"""ReadyForQuery, in no transaction."""


class Cut(Enum):
    """Where the connection is cut that sends the watched-for statement."""

    NOT_AT_ALL = "not at all"
    BEFORE_IT_ARRIVES = "before it arrives"
    BEFORE_THE_ANSWER = "before the answer"
    # Without the Sync behind it, so that the server waits for more in the middle of a pipeline.
    WITHIN_ITS_PIPELINE = "within its pipeline"
    # The connection stays, and nothing comes any more; new connections are refused.
    SILENCE = "silence"
    # An error is sent in place of an answer.
    REFUSED = "refused, and it never arrives"
    REFUSED_AND_DONE = "refused, and done all the same"


class Severing:
    """Passes connections on to a real server until `watch` tells otherwise."""

    def __init__(self, server: Path) -> None:
        self._server = server
        self._statement = b""
        self._cut = Cut.NOT_AT_ALL
        self._sqlstate = ""
        self._silent = False
        self.held_back = threading.Event()
        """Set once a pipeline has arrived without its end."""
        self._connections: set[asyncio.Task[None]] = set()

    def watch(self, statement: bytes, cut: Cut, *, sqlstate: str = "") -> None:
        """Cut the next connection that sends this; once. `sqlstate` is what it is refused with."""
        self._statement, self._cut, self._sqlstate = statement, cut, sqlstate

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._silent:
            writer.close()
            return
        task = asyncio.current_task()
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)
        upstream, downstream = await asyncio.open_unix_connection(self._server)
        answers = asyncio.create_task(self._answers(upstream, writer))
        try:
            while data := await reader.read(65536):
                if self._cut is Cut.NOT_AT_ALL or self._statement not in data:
                    downstream.write(data)
                    await downstream.drain()
                    continue
                cut, self._cut = self._cut, Cut.NOT_AT_ALL
                if cut is Cut.SILENCE:
                    self._silent = True
                    continue
                if cut is Cut.WITHIN_ITS_PIPELINE:
                    assert data.endswith(SYNC)
                    downstream.write(data.removesuffix(SYNC))
                    await downstream.drain()
                    self.held_back.set()
                    continue
                answers.cancel()
                await asyncio.wait([answers])
                if cut in (Cut.BEFORE_THE_ANSWER, Cut.REFUSED_AND_DONE):
                    downstream.write(data)
                    # The answer is read to its end (ReadyForQuery, idle) and kept.
                    answer = b""
                    while not answer.endswith(_READY):
                        answer += await upstream.read(65536)
                if cut in (Cut.REFUSED, Cut.REFUSED_AND_DONE):
                    writer.write(_refusal(self._sqlstate) + _READY)
                break
        except ConnectionError:
            pass  # One end has gone, and the other goes with it.
        finally:
            answers.cancel()
            writer.close()
            downstream.close()

    async def ended(self) -> None:
        """Once every client has closed its end."""
        if self._connections:
            await asyncio.wait(self._connections)

    async def _answers(self, upstream: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await upstream.read(65536):
                if not self._silent:
                    writer.write(data)
                    await writer.drain()
        writer.close()


def _refusal(sqlstate: str) -> bytes:
    """An ErrorResponse, whose length counts itself."""
    fields = f"SERROR\0VERROR\0C{sqlstate}\0Mno\0\0".encode()
    return b"E" + (len(fields) + 4).to_bytes(4, "big") + fields


@asynccontextmanager
async def severing(url: str, folder: Path) -> AsyncIterator[tuple[str, Severing]]:
    """The URL of a database by way of a `Severing`, whose socket is put into the folder."""
    (host,) = parse_qs(urlsplit(url).query)["host"]
    between = Severing(Path(host) / SOCKET)
    server = await asyncio.start_unix_server(between.connected, folder / SOCKET)
    try:
        yield f"{url.partition('?')[0]}?host={quote(str(folder), safe='')}", between
    finally:
        server.close()
        await between.ended()
