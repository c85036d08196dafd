"""One attack beside a well-behaved writer: what its commits take then, and what the service holds.

The service is a process of its own, and so is the writer. An attack is a function that does its
harm once; it is done over and over, in some threads, while the writer is measured.

    with attacked(service, flood_of_scans) as measured:
        measured.check(grown_mib=100)

Where the service asks for tokens, whoever attacks and the writer are two principals, and the first
may commit to the writer's table, too.
"""

import math
import multiprocessing
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import httpx

from tests.builders.flights import table_body
from tests.service.catalog_managed.guarded import make_token
from tests.service.instances import Instance, instances
from tests.service.tenants.writer import PATIENCE_S, Answered, Call, run
from tidegate_service.core.access.roles import Grant, Role
from tidegate_service.settings import Settings

CALLS = 50
"""Of the writer alone, and at least so many beside an attack."""
TIMES = 5
FLOOR_S = 0.5
"""On two cores that others use, too, a call may take so long whatever the service does."""
SLOWEST_S = 3.0
"""No call takes longer beside an attack."""
TRIES = 5
MIB = 1024 * 1024
WRITERS_SCHEMA = "main.writer"
WRITERS_TABLE = f"{WRITERS_SCHEMA}.own"
ATTACKERS_SCHEMA = "main.other"

_forking = multiprocessing.get_context("forkserver")


@dataclass(slots=True)
class Service:
    """A service under attack. `client` is anybody's who attacks, `writers_client` the writer's.
    `scale` is how many times as many attack at once, and how much longer, as a test says."""

    instance: Instance
    writer: Connection
    client: httpx.Client
    writers_client: httpx.Client
    scale: int = 1

    @property
    def api(self) -> str:
        return self.instance.api

    def create(self, name: str, **fields: Any) -> str:
        """The URL of a new catalog-managed table, partitioned by `month`; the writer's where it is
        in its schema."""
        body = table_body(name, catalog_managed=True, **fields)
        is_writers = name.startswith(f"{WRITERS_SCHEMA}.")
        client = self.writers_client if is_writers else self.client
        client.post(f"{self.api}/tables", json=body).raise_for_status()
        return f"{self.api}/tables/{name}"

    def peak_bytes(self) -> int:
        """The most memory that the service has held since `forget_peak`."""
        status = Path(f"/proc/{self.instance.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) * 1024

    def forget_peak(self) -> None:
        Path(f"/proc/{self.instance.pid}/clear_refs").write_text("5")


Attack = Callable[[Service], object]


@dataclass(slots=True)
class Measured:
    """The writer's calls `alone` and `beside` an attack, and by how much the service grew."""

    service: Service
    attackers: "Attackers"
    call: Call
    alone: Sequence[Answered] = ()
    beside: Sequence[Answered] = ()
    before_bytes: int = 0
    grown_bytes: int = 0

    @property
    def answers(self) -> Sequence[object]:
        """What each round of the attack returned."""
        return self.attackers.answers

    def measure(self) -> None:
        """The writer alone, and then beside the attack; each attacker attacks once or more. What
        the service grew by counts from its first measurement on."""
        self.attackers.pause()
        self.alone = self._calls(lambda: True)
        if not self.before_bytes:
            self.service.forget_peak()
            self.before_bytes = self.service.peak_bytes()
        self.attackers.go_on()
        self.beside = self._calls(self.attackers.have_attacked)
        self.grown_bytes = self.service.peak_bytes() - self.before_bytes

    def check(self, *, grown_mib: float, slowest_s: float = SLOWEST_S) -> None:
        """The writer was not stopped, and the service grew by no more than this.

        The machine may have had other work in one half of a measurement and not in the other, so
        the writer is measured again where it was stopped; one of `TRIES` has to be well.
        """
        told: list[str] = []
        while True:
            grown = self.grown_bytes / MIB
            assert grown <= grown_mib, f"the service grew by {grown:.0f} MiB; expected {grown_mib}"
            found = self._stopped(slowest_s)
            if found is None:
                return
            told.append(found)
            assert len(told) < TRIES, "; ".join(told)
            self.measure()

    def _calls(self, enough: Callable[[], bool]) -> list[Answered]:
        """Those of the writer from now on, `CALLS` times the scale or more."""
        found: list[Answered] = []
        writer = self.service.writer
        writer.send(self.call)
        while len(found) < CALLS * self.service.scale or not enough():
            assert writer.poll(PATIENCE_S), "the writer waits for ever"
            found.append(writer.recv())
        writer.send("end")
        while (last := writer.recv()) is not None:
            found.append(last)
        return found

    def _stopped(self, slowest_s: float) -> str | None:
        """How the writer was held up, if it was."""
        usual, found = p98(self.alone), p98(self.beside)
        slowest = max(each.seconds for each in self.beside)
        refused = [each.status for each in self.beside if each.status not in (200, 201)]
        if not refused and found <= max(TIMES * usual, FLOOR_S) and slowest <= slowest_s:
            return None
        return (
            f"p98 of others: {usual * 1e3:.0f} ms alone, {found * 1e3:.0f} ms beside the attack; "
            f"the slowest there {slowest * 1e3:.0f} ms; answered with {refused}"
        )


def p98(found: Sequence[Answered]) -> float:
    return sorted(each.seconds for each in found)[math.ceil(len(found) * 0.98) - 1]


@contextmanager
def tenants(settings: Settings) -> Iterator[Service]:
    """A running service of these settings, and a writer that waits to be measured."""
    may_commit = Grant(Role.WRITER, WRITERS_SCHEMA)
    attackers = _authorization(settings, Grant(Role.ADMIN, ATTACKERS_SCHEMA), may_commit)
    writers = _authorization(settings, may_commit)
    with (
        instances(settings) as [instance],
        httpx.Client(timeout=PATIENCE_S, headers=attackers) as client,
        httpx.Client(timeout=PATIENCE_S, headers=writers) as writers_client,
    ):
        ours, theirs = _forking.Pipe()
        writer = _forking.Process(
            target=run, args=(instance.api, WRITERS_TABLE, writers, theirs), daemon=True
        )
        service = Service(instance, ours, client, writers_client)
        url = service.create(WRITERS_TABLE)
        # What writes checkpoints is loaded by the first one, and is nobody's attack.
        writers_client.post(f"{url}/checkpoint", json={}).raise_for_status()
        writer.start()
        theirs.close()
        try:
            yield service
        finally:
            ours.close()
            writer.join(PATIENCE_S)


def _authorization(settings: Settings, *grants: Grant) -> dict[str, str]:
    """The headers of a new principal that may do this, if the service asks who calls."""
    if settings.auth == "none":
        return {}
    assert settings.database_url is not None
    token = make_token(settings.database_url.get_secret_value(), *grants)
    return {"Authorization": f"Bearer {token}"}


@contextmanager
def attacked(
    service: Service, attack: Attack, *, at_once: int = 1, call: Call = "commits"
) -> Iterator[Measured]:
    """Measure the writer's calls alone and then beside the attack, done `at_once` times the scale
    over and over; each of these was done at least once. It goes on while the caller looks at what
    was measured."""
    with Attackers(service, attack, at_once * service.scale) as attackers:
        measured = Measured(service, attackers, call)
        measured.measure()
        yield measured


class Attackers:
    """Threads that do an attack over and over, from `go_on` to `pause`."""

    def __init__(self, service: Service, attack: Attack, at_once: int) -> None:
        self.answers: list[object] = []
        self._service = service
        self._attack = attack
        self._changed = threading.Condition()
        self._going = self._over = False
        self._in_rounds = 0
        self._have_attacked: set[int] = set()
        self._at_once = at_once
        self._threads = ThreadPoolExecutor(at_once)

    def __enter__(self) -> "Attackers":
        self._running = [self._threads.submit(self._repeat, n) for n in range(self._at_once)]
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._changed:
            self._over = True
            self._changed.notify_all()
        wait(self._running)
        self._threads.shutdown()
        if kind is None:
            # One that could not attack is told of now.
            for attacker in self._running:
                attacker.result()

    def go_on(self) -> None:
        with self._changed:
            self._have_attacked.clear()
            self._going = True
            self._changed.notify_all()

    def pause(self) -> None:
        """Returns once none attacks."""
        with self._changed:
            self._going = False
            self._changed.wait_for(lambda: not self._in_rounds)

    def have_attacked(self) -> bool:
        """Whether each has ended a round since `go_on`, or has failed."""
        with self._changed:
            failed = {n for n, running in enumerate(self._running) if running.done()}
            return len(self._have_attacked | failed) == self._at_once

    def _repeat(self, number: int) -> None:
        while self._begin():
            try:
                self.answers.append(self._attack(self._service))
            finally:
                self._end(number)

    def _begin(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._going or self._over)
            if self._over:
                return False
            self._in_rounds += 1
            return True

    def _end(self, number: int) -> None:
        with self._changed:
            self._in_rounds -= 1
            self._have_attacked.add(number)
            self._changed.notify_all()
