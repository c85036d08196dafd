"""One instance that keeps tables up, is killed while it does, and is started again."""

import itertools
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psycopg

from tests.builders.flights import proposal, table_body
from tests.builders.lines import Line
from tests.service.instances import Deed, Instance, instances
from tests.service.serving import OF_NO_PAGE
from tidegate_service.core.observe.faults import AnyStep, Side
from tidegate_service.settings import Settings

PATIENCE_S = 30.0
DAY_S = 24 * 60 * 60
_numbers = itertools.count()


def wait_for(what: str, is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < until, f"{what}: it does not come to that"
        time.sleep(0.05)


@dataclass(frozen=True, slots=True)
class Keeper:
    instance: Instance
    database_url: str
    client: httpx.Client = field(
        default_factory=lambda: httpx.Client(timeout=40.0, headers=OF_NO_PAGE)
    )

    def create(self, **fields: Any) -> "Kept":
        name = f"main.kept.t{next(_numbers)}"
        made = self.client.post(f"{self.instance.api}/tables", json=table_body(name, **fields))
        head = made.raise_for_status().json()
        folder = Path(head["location"].removeprefix("file://"))
        return Kept(self, name, head["id"], folder)

    def sql(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.database_url) as connection:
            done = connection.execute(query, values)
            return done.fetchall() if done.description else []


@dataclass(frozen=True, slots=True)
class Kept:
    """A table. Its upkeep is due when a test says so, or by what it commits."""

    keeper: Keeper
    name: str
    id: str
    folder: Path

    @property
    def log(self) -> Path:
        return self.folder / "_delta_log"

    @property
    def versions(self) -> list[int]:
        """Those that have commits."""
        return sorted(int(file.stem) for file in self.log.glob("*.json") if file.stem.isdigit())

    @property
    def head(self) -> dict[str, Any]:
        url = f"{self.keeper.instance.api}/tables/{self.name}"
        return self.keeper.client.get(url).raise_for_status().json()

    def post(self, what: str, body: dict[str, Any]) -> httpx.Response | None:
        """The answer; None where the instance ended before it was there."""
        url = f"{self.keeper.instance.api}/tables/{self.name}/{what}"
        try:
            return self.keeper.client.post(url, json=body)
        except httpx.TransportError:
            return None

    def commit(self, *actions: Line, **fields: Any) -> None:
        """It lands; upkeep may end the instance before it says so."""
        answer = self.post(
            "commits", proposal(*actions, transaction_id=f"k{next(_numbers)}", **fields)
        )
        assert answer is None or answer.status_code == 201, answer.text

    def checkpoint(self) -> None:
        answer = self.post("checkpoint", {})
        assert answer is not None
        answer.raise_for_status()

    def age(self, versions: range, *, days: int) -> None:
        """Make versions so many days old, each a second younger than the one before."""
        for version in versions:
            at_s = int(time.time() - days * DAY_S + version)
            self.keeper.sql(
                "UPDATE commits SET timestamp = %s WHERE table_id = %s AND version = %s",
                at_s * 1000,
                self.id,
                version,
            )
            for file in self.log.glob(f"{version:020d}.*"):
                os.utime(file, (at_s, at_s))

    def settled(self, kind: str) -> None:
        """Wait until this has been done once, as it is soon after the table is made."""
        wait_for(f"{kind} is done", lambda: self._done_at(kind) > 0)

    def done_again(self, kind: str) -> None:
        """Have it be due, whoever has claimed it, and wait until it is done."""
        before = self._done_at(kind)
        self.make_due(kind)
        wait_for(f"{kind} is done", lambda: self._done_at(kind) > before)

    def make_due(self, kind: str) -> None:
        """As it is when its time comes, and an hour after whoever claimed it has died."""
        self.keeper.sql(
            "UPDATE table_upkeep SET due_at = clock_timestamp() - interval '1 second', "
            "claimed_by = NULL, claimed_until = NULL WHERE table_id = %s AND kind = %s",
            self.id,
            kind,
        )

    def killed_at(self, step: AnyStep, side: Side, begin: Callable[[], object]) -> None:
        """Begin something that ends the instance at a point by SIGKILL."""
        self.keeper.instance.arm(step, side, Deed.KILL)
        begin()
        assert self.keeper.instance.ended() == -9

    def restarted(self, kind: str | None = None) -> None:
        """Start the instance again, as a minute after its end: no claim is left."""
        if kind is not None:
            self.make_due(kind)
        self.keeper.instance.start()
        self.keeper.instance.ready()

    def _done_at(self, kind: str) -> float:
        """When it was done last; 0 where it never was."""
        rows = self.keeper.sql(
            "SELECT coalesce(extract(epoch FROM done_at), 0)::float8 FROM table_upkeep "
            "WHERE table_id = %s AND kind = %s",
            self.id,
            kind,
        )
        return rows[0][0] if rows else 0.0


@contextmanager
def keeper(database_url: str, folder: Path) -> Iterator[Keeper]:
    settings = Settings(
        database_url=database_url,
        data_dir=folder,
        port=0,
        log_level="error",
        publish_interval_seconds=0.1,
        upkeep_share=1.0,
        commits_to_compact=3,
    )
    with instances(settings) as (instance,):
        made = Keeper(instance, database_url)
        with made.client:
            yield made
