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
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

import httpx

from tests.builders.flights import table_body
from tests.service.catalog_managed.guarded import make_token
from tests.service.instances import Instance, instances
from tests.service.tenants.readers_memory import ReadersMemory
from tests.service.tenants.writer import PATIENCE_S, Answered, Call, run
from tidegate_service.core.access.roles import Grant, Role
from tidegate_service.settings import Settings

TURNS = 3
CALLS = 50
"""Of the writer alone, and at least so many beside an attack, in each turn."""
TIMES = 5
FLOOR_S = 0.5
"""A call may take so long whatever the service does: what attacks has the same two cores."""
SLOWEST_S = 3.0
"""No call takes longer beside an attack."""
MIB = 1024 * 1024
WRITERS_SCHEMA = "main.writer"
WRITERS_TABLE = f"{WRITERS_SCHEMA}.own"
ATTACKERS_SCHEMA = "main.other"
WRITERS_ADDRESS = "192.0.2.1"
"""As a proxy tells it."""

_forking = multiprocessing.get_context("forkserver")


@dataclass(slots=True)
class Service:
    """A service under attack. `client` is anybody's who attacks, `writers_client` the writer's."""

    instance: Instance
    writer: Connection
    client: httpx.Client
    writers_client: httpx.Client
    settings: Settings

    @property
    def api(self) -> str:
        return self.instance.api

    def create(self, name: str, **fields: Any) -> str:
        """The URL of a new catalog-managed table, partitioned by `month`; the writer's where it is
        in its schema."""
        self.created(table_body(name, catalog_managed=True, **fields))
        return f"{self.api}/tables/{name}"

    def created(self, body: dict[str, Any]) -> httpx.Response:
        """The answer to a creation. It is asked for again while the service has no time for it."""
        is_writers = body["name"].startswith(f"{WRITERS_SCHEMA}.")
        client = self.writers_client if is_writers else self.client
        until = time.monotonic() + PATIENCE_S
        while (answer := client.post(f"{self.api}/tables", json=body)).status_code == 503:
            assert time.monotonic() < until, answer.text
            time.sleep(float(answer.headers["Retry-After"]))
        assert answer.status_code == 201, answer.text
        return answer

    @contextmanager
    def attackers(self, count: int) -> Iterator[list[httpx.Client]]:
        """Clients of so many further principals, who may do what `client` may in their schema."""
        grant = Grant(Role.ADMIN, ATTACKERS_SCHEMA)
        with ExitStack() as held:
            yield [
                held.enter_context(
                    httpx.Client(timeout=PATIENCE_S, headers=_authorization(self.settings, grant))
                )
                for _ in range(count)
            ]

    def peak_bytes(self) -> int:
        """The most memory that the service has held since `forget_peak`."""
        status = Path(f"/proc/{self.instance.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) * 1024

    def forget_peak(self) -> None:
        Path(f"/proc/{self.instance.pid}/clear_refs").write_text("5")


Attack = Callable[[Service], object]


@dataclass(frozen=True, slots=True)
class Turn:
    """The writer's calls `alone`, and then `beside` an attack, and by how much the service grew in
    that, with the processes that read checkpoints for it."""

    alone: Sequence[Answered]
    beside: Sequence[Answered]
    grown_bytes: int

    @property
    def ratio(self) -> float:
        return p99(self.beside) / p99(self.alone)

    def is_well(self, slowest_s: float) -> bool:
        """Whether the writer was neither refused nor held up."""
        return (
            all(each.status in (200, 201) for each in self.beside)
            and (self.ratio <= TIMES or p99(self.beside) <= FLOOR_S)
            and max(each.seconds for each in self.beside) <= slowest_s
        )

    def __str__(self) -> str:
        slowest = max(each.seconds for each in self.beside)
        refused = [each.status for each in self.beside if each.status not in (200, 201)]
        return (
            f"{p99(self.alone) * 1e3:.0f} ms alone, {p99(self.beside) * 1e3:.0f} ms beside the "
            f"attack, the slowest {slowest * 1e3:.0f} ms, refused with {refused}"
        )


class Measured:
    """`TURNS` turns, one after the other."""

    def __init__(self, service: Service, attackers: "Attackers", call: Call) -> None:
        self._service = service
        self._attackers = attackers
        self._call = call
        self.turns = [self._turn() for _ in range(TURNS)]

    @property
    def answers(self) -> Sequence[object]:
        """What each round of the attack returned."""
        return self._attackers.answers

    def check(self, *, grown_mib: float, slowest_s: float = SLOWEST_S) -> None:
        """In most turns the writer was not stopped, and in each the service grew by no more than
        this. Both are printed first, the ratio of the 99th percentiles with its spread."""
        ratios = sorted(turn.ratio for turn in self.turns)
        grown = max(turn.grown_bytes for turn in self.turns) / MIB
        print(
            f"\n  p99 beside the attack, of that alone: {median(ratios):.1f} ({ratios[0]:.1f} to "
            f"{ratios[-1]:.1f}); the service grew by {grown:.0f} MiB, expected {grown_mib:.0f}"
        )
        assert grown <= grown_mib
        well = sum(turn.is_well(slowest_s) for turn in self.turns)
        assert 2 * well > TURNS, "; ".join(map(str, self.turns))

    def _turn(self) -> Turn:
        """Each attacker attacks once or more. The attack goes on behind the last turn."""
        self._attackers.pause()
        alone = self._calls(lambda: True)
        self._service.forget_peak()
        before_bytes = self._service.peak_bytes()
        with ReadersMemory(self._service.instance.pid) as readers:
            self._attackers.go_on()
            beside = self._calls(self._attackers.have_attacked)
        return Turn(alone, beside, self._service.peak_bytes() - before_bytes + readers.peak_bytes)

    def _calls(self, enough: Callable[[], bool]) -> list[Answered]:
        """Those of the writer from now on, `CALLS` or more."""
        found: list[Answered] = []
        writer = self._service.writer
        writer.send(self._call)
        while len(found) < CALLS or not enough():
            assert writer.poll(PATIENCE_S), "the writer waits for ever"
            found.append(writer.recv())
        writer.send("end")
        while (last := writer.recv()) is not None:
            found.append(last)
        return found


def p99(found: Sequence[Answered]) -> float:
    """Of less than a hundred, the slowest but one: one outlier is the machine's."""
    rank = min(math.ceil(len(found) * 0.99), max(1, len(found) - 1))
    return sorted(each.seconds for each in found)[rank - 1]


@contextmanager
def tenants(settings: Settings) -> Iterator[Service]:
    """A running service of these settings, and a writer that waits to be measured."""
    may_commit = Grant(Role.WRITER, WRITERS_SCHEMA)
    attackers = _authorization(settings, Grant(Role.ADMIN, ATTACKERS_SCHEMA), may_commit)
    writers = _authorization(settings, may_commit)
    if settings.trusted_proxies:
        writers["X-Forwarded-For"] = WRITERS_ADDRESS
    with (
        instances(settings) as [instance],
        httpx.Client(timeout=PATIENCE_S, headers=attackers) as client,
        httpx.Client(timeout=PATIENCE_S, headers=writers) as writers_client,
    ):
        ours, theirs = _forking.Pipe()
        writer = _forking.Process(
            target=run, args=(instance.api, WRITERS_TABLE, writers, theirs), daemon=True
        )
        service = Service(instance, ours, client, writers_client, settings)
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
    """Measure the writer's calls alone and then beside the attack, done `at_once` times over and
    over; each of these was done at least once. It goes on while the caller looks at what was
    measured."""
    with Attackers(service, attack, at_once) as attackers:
        yield Measured(service, attackers, call)


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
            # Those that could not attack are told of now.
            failed = [error for each in self._running if (error := each.exception()) is not None]
            if failed:
                raise ExceptionGroup(f"{len(failed)} of {self._at_once} failed", failed)

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
            began = time.monotonic()
            try:
                self.answers.append(self._attack(self._service))
            except Exception as error:
                error.add_note(f"begun {time.monotonic() - began:.0f} s before")
                raise
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
