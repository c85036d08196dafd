"""Two instances on one Postgres, of which one is killed, and what must hold afterwards."""

import itertools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.builders.flights import add, proposal, table_body
from tests.service.instances import Deed, Instance, instances
from tests.service.serving import OF_NO_PAGE
from tidegate_service.core.observe.faults import Side, Step
from tidegate_service.settings import Settings

_numbers = itertools.count()

OF_WHAT_LANDED = ("version", "transaction_id", "timestamp", "is_blind_append", "rebased_over")
"""What of an answer every later one has to repeat."""


@dataclass(slots=True)
class Pair:
    """`victim` publishes at once; `survivor` only when told that something waits."""

    victim: Instance
    survivor: Instance
    folder: Path
    database_url: str
    client: httpx.Client = field(
        default_factory=lambda: httpx.Client(timeout=40.0, headers=OF_NO_PAGE)
    )

    def create(self, *, catalog_managed: bool, **fields: Any) -> "Table":
        name = f"main.crash.t{next(_numbers)}"
        body = table_body(name, catalog_managed=catalog_managed, **fields)
        made = self.client.post(f"{self.victim.api}/tables", json=body).raise_for_status()
        return Table(self, name, Path(made.json()["location"].removeprefix("file://")))

    def restart(self) -> None:
        self.victim.start()
        self.victim.ready()


@dataclass(frozen=True, slots=True)
class Table:
    pair: Pair
    name: str
    folder: Path

    def head(self, instance: Instance) -> dict[str, Any]:
        return self._get(instance, "").json()

    def caught_up(self) -> dict[str, Any]:
        """The head once everything is published, by the victim."""
        while True:
            head = self.head(self.pair.victim)
            if head["published_version"] == head["latest_version"]:
                return head

    def propose(self, instance: Instance, body: dict[str, Any]) -> httpx.Response | None:
        """The answer; None where there was none."""
        try:
            return self.pair.client.post(f"{instance.api}/tables/{self.name}/commits", json=body)
        except httpx.TransportError:
            return None

    def abort(self, instance: Instance, transaction_id: str) -> httpx.Response:
        url = f"{instance.api}/tables/{self.name}/transactions/{transaction_id}/abort"
        return self.pair.client.post(url)

    def history(self, instance: Instance) -> list[dict[str, Any]]:
        """Every version's row, oldest first."""
        found = self._get(instance, "/commits", limit=1000).json()["commits"]
        return list(reversed(found))

    def content(self, instance: Instance, version: int) -> bytes:
        return self._get(instance, f"/commits/{version}").content

    def log(self) -> list[bytes]:
        """Every file of the log, version by version."""
        names = sorted((self.folder / "_delta_log").glob("*.json"))
        assert [int(name.stem) for name in names] == list(range(len(names)))
        return [name.read_bytes() for name in names]

    def ids(self) -> list[str | None]:
        """The transaction id of every version of the log."""
        return [
            json.loads(content.split(b"\n")[0])["commitInfo"]["txnId"] for content in self.log()
        ]

    def _get(self, instance: Instance, path: str, **query: int) -> httpx.Response:
        url = f"{instance.api}/tables/{self.name}{path}"
        return self.pair.client.get(url, params=query).raise_for_status()


@contextmanager
def pair(database_url: str, folder: Path) -> Iterator[Pair]:
    settings = Settings(
        database_url=database_url,
        data_dir=folder,
        port=0,
        log_level="error",
        publish_interval_seconds=0.1,
    )
    patient = Settings(**{**dict(settings), "publish_interval_seconds": 60.0})
    with instances(settings, patient) as (victim, survivor):
        made = Pair(victim=victim, survivor=survivor, folder=folder, database_url=database_url)
        with made.client:
            yield made


def new_body() -> dict[str, Any]:
    number = next(_numbers)
    return proposal(add(f"month=5/{number}.parquet"), transaction_id=f"crash-{number}")


def landed(answer: httpx.Response) -> dict[str, Any]:
    """What an answer says of the commit, without what may differ from copy to copy."""
    assert answer.status_code in (200, 201), answer.text
    return {name: answer.json()[name] for name in OF_WHAT_LANDED}


def check_log(table: Table) -> None:
    """Versions without a gap, each id once, timestamps that grow; both instances and the log
    hold the same bytes of every version."""
    head = table.caught_up()
    log = table.log()
    history = table.history(table.pair.survivor)
    assert history == table.history(table.pair.victim)
    assert [commit["version"] for commit in history] == list(range(head["latest_version"] + 1))
    assert len(log) == len(history)
    assert [commit["transaction_id"] for commit in history] == table.ids()
    assert len(set(table.ids())) == len(log)
    times = [commit["timestamp"] for commit in history]
    assert all(earlier < later for earlier, later in itertools.pairwise(times))
    for instance in (table.pair.victim, table.pair.survivor):
        assert table.content(instance, len(log) - 1) == log[-1]


def crash_and_retry(two: Pair, table: Table, step: Step, side: Side) -> int:
    """Kill the victim at a point of a commit, send the same to the survivor and to the victim's
    successor, and raise `AssertionError` unless it landed once, with one answer, and nothing else
    was lost. Returns 1 where the victim had answered, else 0."""
    before = table.caught_up()["latest_version"]
    body = new_body()
    two.victim.arm(step, side, Deed.KILL)
    first = table.propose(two.victim, body)
    assert two.victim.ended() == -9

    second = table.propose(two.survivor, body)
    assert second is not None
    two.restart()
    third = table.propose(two.victim, body)
    assert third is not None
    assert landed(second) == landed(third)
    assert third.json()["replayed"]
    assert second.json()["version"] == before + 1
    if first is not None:
        assert landed(first) == landed(second)
        assert second.json()["replayed"]

    other = table.propose(two.survivor, {**body, "actions": [add("month=5/other.parquet")]})
    assert other is not None
    assert (other.status_code, other.json()["code"]) == (422, "transaction-id-reused")
    check_log(table)
    assert table.ids().count(body["transaction_id"]) == 1
    return int(first is not None)
