"""`/metrics` of a service of several processes: whoever is asked answers for all of them.

Each process says what it counts on a socket of its own, in a folder that only their user can
reach. Every sample carries the process's name as the label `worker`.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.registry import Collector

from tidegate_service.telemetry.exposition import Exposition

ANSWER_S = 2.0
"""How long a peer may take to say what it counts; one that takes longer is left out."""
_BLOCK = b"# HELP "

Text = Callable[[], Awaitable[bytes]]


class Labelled(Collector):
    """What a registry has, every sample of it under a name."""

    def __init__(self, registry: CollectorRegistry, worker: str) -> None:
        self._registry = registry
        self._worker = worker

    def describe(self) -> Iterable[Metric]:
        """Nothing: reading the names would read the gauges."""
        return ()

    def collect(self) -> Iterable[Metric]:
        for metric in self._registry.collect():
            metric.samples = [
                sample._replace(labels={**sample.labels, "worker": self._worker})
                for sample in metric.samples
            ]
            yield metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Peers:
    """The processes of one service, as one of them sees them; `name` is its own.
    Another one answers within `answer_s`, or is left out."""

    name: str
    folder: Path
    answer_s: float = 2.0

    def labelled(self, registry: CollectorRegistry) -> CollectorRegistry:
        """A registry to expose in the place of the process's own."""
        labelled = CollectorRegistry()
        labelled.register(Labelled(registry, self.name))
        return labelled

    @asynccontextmanager
    async def shown(self, text: Text) -> AsyncIterator[None]:
        """Answer the others with this process's text meanwhile. Raises `OSError`."""

        async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(await text() + _END)
            writer.close()
            await writer.wait_closed()

        path = self._socket(self.name)
        # One of the same name that was killed has left its own behind.
        path.unlink(missing_ok=True)
        server = await asyncio.start_unix_server(answer, path)
        try:
            yield
        finally:
            server.close()

    async def gathered(self, own: Text) -> bytes:
        """The text of this process and of all others that answer."""
        others = sorted(path for path in self.folder.glob("*.sock") if path.stem != self.name)
        return merged(
            await asyncio.gather(own(), *(_asked(path, self.answer_s) for path in others))
        )

    def _socket(self, name: str) -> Path:
        return self.folder / f"{name}.sock"


@asynccontextmanager
async def shown(own: Exposition, among: Peers | None) -> AsyncIterator[Text]:
    """What answers for `/metrics`: of this process, and of those it is one of. Raises `OSError`."""
    if among is None:
        yield own.text
        return
    labelled = partial(own.text, among.labelled(own.registry))
    async with among.shown(labelled):
        yield partial(among.gathered, labelled)


_END = b"# EOF\n"
"""Ends what processes tell each other, so that nothing that was cut off passes for the whole."""


def merged(texts: Iterable[bytes]) -> bytes:
    """Texts of which each has a part of the samples as one that has each metric once."""
    blocks: dict[bytes, list[bytes]] = {}
    for text in texts:
        for block in text.split(_BLOCK)[1:]:
            name = block.partition(b" ")[0]
            lines = block.splitlines(keepends=True)
            if name not in blocks:
                blocks[name] = [_BLOCK + lines[0], lines[1]]
            blocks[name] += lines[2:]
    return b"".join(line for lines in blocks.values() for line in lines)


def text_of(registry: CollectorRegistry) -> Text:
    """The text of a registry that needs to ask nobody."""

    async def text() -> bytes:
        return generate_latest(registry)

    return text


async def _asked(path: Path, answer_s: float) -> bytes:
    """Nothing from a process that is gone or hangs."""
    try:
        async with asyncio.timeout(answer_s):
            reader, writer = await asyncio.open_unix_connection(path)
            try:
                text = await reader.read()
            finally:
                writer.close()
    except OSError:
        return b""
    # One that died while it answered.
    return text if text.endswith(_END) else b""
