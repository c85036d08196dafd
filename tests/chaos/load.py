"""Clients under which a run stands: they propose, ask again, abort and read, and note it all.

Each works on its own, against one instance after another, whoever answers. A work is sent until
it is known what became of it; some are sent to two instances at once, some under an id that has
another body, some are aborted while nobody knows where they are.
"""

import asyncio
import hashlib
import itertools
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.builders import lines
from tests.chaos.judging.history import (
    AbortedBy,
    Answer,
    History,
    Looked,
    Proposed,
    ReadBytes,
    Work,
)

SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": "p", "type": "string", "nullable": True, "metadata": {}},
        {"name": "v", "type": "long", "nullable": True, "metadata": {}},
    ],
}
PARTITIONS = 4
"""Registers, and partitions that are appended to, of each table."""
ATTEMPTS = 100
"""Copies of one work before its client gives up; each waits a little longer for the next."""
REQUEST_TIMEOUT_S = 45.0


@dataclass(slots=True)
class Counts:
    """Of one run, for its report."""

    acked: int = 0
    replays: int = 0
    conflicts: int = 0
    unknown: int = 0
    aborted: int = 0
    given_up: int = 0
    defects: int = 0


@dataclass(slots=True)
class Load:
    """What the clients share. `urls` are the instances' APIs; `stop` is set from outside;
    a client rests for `pause_s` after each work."""

    urls: Sequence[str]
    tables: Sequence[str]
    history: History
    seed: int
    http: httpx.AsyncClient
    pause_s: float = 0.0
    counts: Counts = field(default_factory=Counts)
    stop: asyncio.Event = field(default_factory=asyncio.Event)

    async def client(self, number: int) -> None:
        """Works until told to stop; what it has begun is brought to an end."""
        client = _Client(self, number, random.Random(self.seed * 1000 + number))
        while not self.stop.is_set():
            await client.work()
            await asyncio.sleep(self.pause_s)


class _Client:
    def __init__(self, load: Load, number: int, dice: random.Random) -> None:
        self._load = load
        self._dice = dice
        self._number = number
        self._urls = itertools.cycle(load.urls)
        self._works = itertools.count()

    async def work(self) -> None:
        """One piece of work, to its end."""
        table = self._dice.choice(self._load.tables)
        kinds = {"append": 44, "register": 30, "summary": 8, "total": 2, "stream": 8, "look": 8}
        kind = self._dice.choices(list(kinds), list(kinds.values()))[0]
        if kind == "look":
            await self._look(table)
            return
        work = await self._new_work(table, kind)
        if work is not None:
            await self._settle(work)

    async def _new_work(self, table: str, kind: str) -> Work | None:
        name = f"c{self._number}-{next(self._works)}"
        identity = f"{self._load.seed}-{name}"
        if kind == "append":
            partition = f"a{self._dice.randrange(PARTITIONS)}"
            return Work(table=table, id=identity, adds=((f"{partition}/{name}", partition),))
        read = f"{'r' if kind == 'register' else 'a'}{self._dice.randrange(PARTITIONS)}"
        found = await self._scan(table, read)
        if found is None:
            return None
        version, paths = found
        if kind == "total":
            added = ((f"s/{name}", "s"),)
            return Work(
                table=table, id=identity, adds=added, read_version=version, whole_table=True
            )
        if kind == "stream":
            return Work(
                table=table,
                id=identity,
                adds=((f"{read}/{name}", read),),
                read_version=version,
                app=f"stream-{self._dice.randrange(PARTITIONS)}",
            )
        if kind == "summary":
            return Work(
                table=table,
                id=identity,
                adds=((f"s/{name}", "s"),),
                read_version=version,
                read=frozenset({read}),
            )
        parent = paths[0] if paths else None
        # The value carries the hash of the one that it was made from.
        value = hashlib.sha256(str(parent).encode()).hexdigest()[:16]
        return Work(
            table=table,
            id=identity,
            adds=((f"{read}/{value}-{name}", read),),
            removes=tuple(paths),
            read_version=version,
            read=frozenset({read}),
            register=read,
            parent=parent,
        )

    async def _settle(self, work: Work) -> None:
        twice = self._dice.random() < 0.05
        for attempt in range(ATTEMPTS):
            copies = 2 if twice and attempt == 0 else 1
            answers = await asyncio.gather(*(self._propose(work) for _ in range(copies)))
            if any(answer in (Answer.LANDED, Answer.NEVER) for answer in answers):
                if Answer.LANDED in answers and self._dice.random() < 0.05:
                    await self._after(work)
                return
            if Answer.UNKNOWN in answers and self._dice.random() < 0.03 and await self._abort(work):
                return
            await asyncio.sleep(min(0.02 * 2**attempt, 0.5))
        self._load.counts.given_up += 1

    async def _after(self, work: Work) -> None:
        """The same again, another body under the same id, and the bytes."""
        await self._propose(work)
        other = Work(table=work.table, id=work.id, adds=((f"a0/other-{work.id}", "a0"),))
        await self._propose(other)
        told = await self._get(f"/tables/{work.table}/transactions/{work.id}")
        version = None if told is None else told.json()["version"]
        answer = await self._get(f"/tables/{work.table}/commits/{version}")
        if version is not None and answer is not None:
            sha256 = hashlib.sha256(answer.content).hexdigest()
            self._note(ReadBytes(table=work.table, version=version, sha256=sha256))

    async def _propose(self, work: Work) -> Answer:
        counts = self._load.counts
        sent = time.monotonic()
        try:
            response = await self._load.http.post(
                f"{next(self._urls)}/tables/{work.table}/commits", json=_body(work)
            )
            status, told = response.status_code, response.json()
        except (httpx.HTTPError, ValueError):
            status, told = 0, {}
        answer = _meaning(status)
        landed = answer is Answer.LANDED
        counts.acked += landed and not told["replayed"]
        counts.replays += landed and told["replayed"]
        counts.conflicts += status == 409
        counts.unknown += answer is Answer.UNKNOWN
        counts.defects += status == 500
        self._note(
            Proposed(
                work=work,
                sent=sent,
                answered=time.monotonic(),
                answer=answer,
                code=told.get("code", ""),
                version=told["version"] if landed else None,
                timestamp=told["timestamp"] if landed else None,
            )
        )
        return answer

    async def _abort(self, work: Work) -> bool:
        """True where the service says that it will never land."""
        sent = time.monotonic()
        url = f"{next(self._urls)}/tables/{work.table}/transactions/{work.id}/abort"
        try:
            response = await self._load.http.post(url)
        except httpx.HTTPError:
            return False
        if response.status_code != 200:
            return False
        self._load.counts.aborted += 1
        self._note(AbortedBy(table=work.table, id=work.id, sent=sent, answered=time.monotonic()))
        # And nothing else is heard of it from anybody.
        await self._propose(work)
        return True

    async def _scan(self, table: str, partition: str) -> tuple[int, list[str]] | None:
        try:
            response = await self._load.http.post(
                f"{next(self._urls)}/tables/{table}/scan",
                json={"predicates": [f"p = '{partition}'"]},
            )
        except httpx.HTTPError:
            return None
        if response.status_code != 200:
            return None
        told = response.json()
        return told["version"], [file["add"]["path"] for file in told["files"]]

    async def _look(self, table: str) -> None:
        sent = time.monotonic()
        answer = await self._get(f"/tables/{table}")
        if answer is not None:
            head = answer.json()
            self._note(
                Looked(
                    table=table,
                    sent=sent,
                    answered=time.monotonic(),
                    version=head["latest_version"],
                    published=head["published_version"],
                )
            )

    async def _get(self, path: str) -> httpx.Response | None:
        try:
            response = await self._load.http.get(f"{next(self._urls)}{path}")
        except httpx.HTTPError:
            return None
        return response if response.status_code == 200 else None

    def _note(self, call: Proposed | AbortedBy | Looked | ReadBytes) -> None:
        self._load.history.calls.append(call)


def _meaning(status: int) -> Answer:
    if status in (200, 201):
        return Answer.LANDED
    if status in (409, 410, 422):
        return Answer.NEVER
    if status in (401, 403, 413, 429):
        return Answer.NOT_EXECUTED
    return Answer.UNKNOWN


def _body(work: Work) -> dict[str, Any]:
    removes = [lines.remove(path) for path in work.removes]
    adds = [lines.add(path, {"p": partition}, stats=None) for path, partition in work.adds]
    apps = [] if work.app is None else [work.app]
    steps = [{"txn": {"appId": app, "version": work.read_version}} for app in apps]
    return {
        "transaction_id": work.id,
        "operation": "WRITE",
        "read_version": work.read_version,
        "reads": {
            "predicates": [f"p = '{partition}'" for partition in sorted(work.read)],
            "whole_table": work.whole_table,
            "app_ids": apps,
        },
        "actions": [*removes, *adds, *steps],
    }
