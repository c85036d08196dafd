"""The real service for a machine: instances in this process, on one Postgres and one folder.

Every instance is what `app.open_service` composes, with two differences: its storage and its
steps are scripted, and its publisher publishes when the machine says so and never by itself. What
its groups come to is noted.
"""

import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import httpx
import psycopg
import uvloop

from tests.memory import folder_of_tests
from tests.service.machine.wire import Died, Script, ScriptedStorage
from tests.service.process.severing import Severing, severing
from tests.service.serving import OF_NO_PAGE
from tidegate_service.app import open_service
from tidegate_service.background.publisher import Publisher
from tidegate_service.core.commit.queue.commit_queue import RunGroup
from tidegate_service.core.commit.queue.waiting_proposal import (
    GroupResult,
    InCompany,
    WaitingProposal,
)
from tidegate_service.core.context import Context
from tidegate_service.core.observe.faults import Side, Step
from tidegate_service.core.ports.outcomes import Committed
from tidegate_service.index.schema.tables import tables
from tidegate_service.settings import Settings

T = TypeVar("T")

API = "http://localhost/api/v1"


class _Never:
    """Fault points of a publisher that gets no further than the first file."""

    async def reached(self, step: Step, side: Side) -> None:
        await asyncio.Event().wait()


class Landings:
    """The most proposals to one table that a group has landed, over all instances."""

    def __init__(self) -> None:
        self.plain = self.managed = 0

    def noting(self, run_group: RunGroup) -> RunGroup:
        """The same, its groups noted."""

        async def noted(
            members: Sequence[WaitingProposal], wait: bool, in_company: InCompany
        ) -> GroupResult:
            result = await run_group(members, wait, in_company)
            landed = Counter(member.table for member in members if _has_landed(member))
            for table, count in landed.items():
                if table.catalog_managed:
                    self.managed = max(self.managed, count)
                else:
                    self.plain = max(self.plain, count)
            return result

        return noted


def _has_landed(member: WaitingProposal) -> bool:
    answer = member.answer
    if not answer.done() or answer.cancelled() or answer.exception() is not None:
        return False
    outcome = answer.result()
    return isinstance(outcome, Committed) and not outcome.replayed


class Instance:
    """One instance, up or down."""

    context: Context

    def __init__(self, settings: Settings, landings: Landings) -> None:
        self._settings = settings
        self._landings = landings
        self._stack = AsyncExitStack()
        self.script = Script()

    async def open(self) -> None:
        service = await self._stack.enter_async_context(
            open_service(self._settings, faults=_Never())
        )
        storage = ScriptedStorage(service.context.storage, self.script)
        self.context = replace(service.context, storage=storage, faults=self.script)
        committer = self.context.commit.__self__  # type: ignore[attr-defined]
        committer._run_group = self._landings.noting(committer._run_group)
        service.app.state.context = self.context
        self._client = await self._stack.enter_async_context(
            httpx.AsyncClient(
                transport=httpx.ASGITransport(app=service.app), base_url=API, headers=OF_NO_PAGE
            )
        )

    async def close(self) -> None:
        await self._stack.aclose()
        self._stack = AsyncExitStack()

    async def restart(self) -> None:
        await self.close()
        await self.open()

    async def send(
        self, method: str, path: str, content: bytes = b"", kind: str = "application/json"
    ) -> httpx.Response | None:
        """The answer; None where the instance died of it."""
        headers = {"Content-Type": kind} if content else {}
        try:
            return await self._client.request(method, path, content=content, headers=headers)
        except Died:
            return None
        finally:
            self.script.clear()

    async def send_all(
        self, requests: Sequence[tuple[str, bytes, str]]
    ) -> list[httpx.Response | None]:
        """The answers to POSTs that are sent at once: each a path, a body and its type. None for
        those that it died of."""
        sent = [
            self._client.post(path, content=content, headers={"Content-Type": kind})
            for path, content, kind in requests
        ]
        try:
            found = await asyncio.gather(*sent, return_exceptions=True)
        finally:
            self.script.clear()
        for one in found:
            if isinstance(one, BaseException) and not isinstance(one, Died):
                raise one
        return [None if isinstance(one, BaseException) else one for one in found]

    async def get(self, path: str, **query: object) -> httpx.Response:
        answer = await self._client.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer

    async def post(self, path: str, body: Mapping[str, object]) -> httpx.Response:
        answer = await self.send("POST", path, json.dumps(body).encode())
        assert answer is not None
        return answer

    async def publish(self) -> int:
        """One round of the publisher over every table."""
        return await Publisher(self.context.index, self.context.storage).round()


class Rig:
    """Two instances, `a` and `b`, and `cut`, whose connections to Postgres can be cut.

    `sql` looks into the index past the service, `warehouse` is the folder of its tables, and
    `landings` are those of all machines so far.
    """

    def __init__(self, database_url: str, folder: Path) -> None:
        self.warehouse = folder / "warehouse"
        self.landings = Landings()
        self.sql = psycopg.connect(database_url, autocommit=True)
        self._url = database_url
        self._folder = folder
        self._runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        self._stack = AsyncExitStack()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(coroutine)

    def empty(self) -> None:
        """Every table is forgotten: the next machine starts from nothing. The audit trail, which
        only ever grows, says nothing that a machine looks at."""
        emptied = tables.metadata.tables.keys() - {"audit"}
        self.sql.execute(f"TRUNCATE {', '.join(sorted(emptied))}")

    def forget_scripts(self) -> None:
        """Nothing of a machine that ended is left for the next one to meet."""
        for instance in self.instances:
            instance.script.clear()
            instance.script.held.clear()

    def __enter__(self) -> "Rig":
        self.run(self._open())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.run(self._close())
        self._runner.close()
        self.sql.close()

    async def _open(self) -> None:
        url, self.between = await self._stack.enter_async_context(
            severing(self._url, Path(self._folder))
        )
        self.a, self.b, self.cut = (
            Instance(self._settings(u), self.landings) for u in (self._url, self._url, url)
        )
        for instance in self.instances:
            await instance.open()

    async def _close(self) -> None:
        for instance in self.instances:
            await instance.close()
        await self._stack.aclose()

    @property
    def instances(self) -> tuple[Instance, Instance, Instance]:
        return self.a, self.b, self.cut

    def _settings(self, database_url: str) -> Settings:
        return Settings(
            database_url=database_url,
            data_dir=self._folder,
            port=0,
            publish_interval_seconds=60.0,
            database_pool_size=2,
        )

    between: Severing


@contextmanager
def rig(database_url: str) -> Iterator[Rig]:
    """A rig on a migrated database of its own."""
    with (
        tempfile.TemporaryDirectory(prefix="machine-", dir=folder_of_tests()) as folder,
        Rig(database_url, Path(folder)) as made,
    ):
        yield made
