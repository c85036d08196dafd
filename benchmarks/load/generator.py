"""The load generator: `python -m benchmarks.load.generator`, a plan on standard input, one process.

It shares the machine with what it measures, so it does little: requests are made from bytes that
are ready but for an id, answers are searched and not parsed. Every answer is looked at: its
status, and that no version of a table is given twice.
"""

import asyncio
import sys
import time
from collections.abc import Iterator

import msgspec
import uvloop

from benchmarks.load.plan import Kind, Plan, Told
from benchmarks.load.writer_requests import Overwrites, Requests, appends
from benchmarks.rig import processes

_VERSION = b'"version":'
_LENGTH = b"content-length: "
_HEAD_END = b"\r\n\r\n"
_REFUSED_PAUSE_S = 1.0
"""What the service asks for with its 429 (`Retry-After`)."""
_STEP_S = 0.1
_LONGEST_S = 60.0


class Tally:
    """What all writers have seen."""

    def __init__(self, tables: tuple[str, ...]) -> None:
        self.measuring = False
        self.stopping = False
        self.commits = self.conflicts = self.refused = 0
        self.latencies: list[float] = []
        self.versions: dict[str, set[int]] = {table: set() for table in tables}
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.failed.add_done_callback(lambda failed: failed.cancelled() or failed.exception())

    def fail(self, what: str) -> None:
        if not self.failed.done():
            self.failed.set_exception(RuntimeError(what))


class Writer(asyncio.Protocol):
    """One connection: sends a request, reads the answer, sends the next."""

    def __init__(self, requests: Requests, tally: Tally) -> None:
        self._requests = requests
        self._tally = tally
        self._versions = tally.versions[requests.table]
        self._received = b""
        self._sent_at = 0.0
        self._transport: asyncio.Transport | None = None
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self._tally.fail(f"a connection was closed with a request under way: {exc}")

    def send(self, request: bytes) -> None:
        assert self._transport is not None
        self._sent_at = time.perf_counter()
        self._transport.write(request)

    def start(self) -> None:
        self.send(self._requests.next())

    def data_received(self, data: bytes) -> None:
        received = self._received + data if self._received else data
        head_end = received.find(_HEAD_END)
        if head_end < 0 or len(received) < head_end + 4 + content_length(received, head_end):
            self._received = received
            return
        self._received = b""
        self._answered(received, received[9:12])

    def _answered(self, answer: bytes, status: bytes) -> None:
        tally = self._tally
        if status == b"201":
            version = version_in(answer)
            if version in self._versions:
                tally.fail(f"version {version} of {self._requests.table} was given twice")
                return
            self._versions.add(version)
            self._requests.landed(version)
            if tally.measuring:
                tally.commits += 1
                tally.latencies.append(time.perf_counter() - self._sent_at)
        elif status == b"409" and self._requests.conflicted(answer):
            tally.conflicts += tally.measuring
        elif status == b"429":
            tally.refused += tally.measuring
            asyncio.get_running_loop().call_later(_REFUSED_PAUSE_S, self._go_on, False)
            return
        else:
            tally.fail(f"unexpected answer: {answer[:2000].decode(errors='replace')}")
            return
        self._go_on(True)

    def _go_on(self, is_new: bool) -> None:
        if self._tally.stopping:
            self.done.set_result(None)
        else:
            self.send(self._requests.next() if is_new else self._requests.same())

    def close(self) -> None:
        assert self._transport is not None
        self._transport.close()


def content_length(answer: bytes, head_end: int) -> int:
    found = answer.find(_LENGTH, 0, head_end)
    if found < 0:
        found = answer[:head_end].lower().find(_LENGTH)
    if found < 0:
        raise ValueError(f"expected an answer with a length, found {answer[:head_end]!r}")
    start = found + len(_LENGTH)
    end = answer.find(b"\r", start)
    return int(answer[start:end])


def version_in(answer: bytes) -> int:
    """The first `version` of a body, a whole number."""
    start = answer.index(_VERSION) + len(_VERSION)
    end = start
    while answer[end] in b" 0123456789":
        end += 1
    return int(answer[start:end])


def requests_of(plan: Plan) -> Iterator[Requests]:
    for number in range(plan.writers):
        table = plan.tables[number % len(plan.tables)]
        if plan.kind is Kind.APPEND:
            yield appends(plan, table, writer=number)
        else:
            yield Overwrites(plan, table, writer=number)


async def run(plan: Plan) -> Told:
    """Connect everybody, wait for a line on standard input, load, tell."""
    loop = asyncio.get_running_loop()
    tally = Tally(plan.tables)
    writers = []
    for requests in requests_of(plan):
        _, writer = await loop.create_connection(
            lambda requests=requests: Writer(requests, tally),  # type: ignore[misc]
            plan.host,
            plan.port,
        )
        writers.append(writer)
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.buffer.readline)
    for writer in writers:
        writer.start()
    await _pass(plan.warm_up_s, tally)
    busy, before = processes.busy_seconds(), _cpu(plan)
    tally.measuring, started = True, time.perf_counter()
    await _pass(plan.seconds, tally)
    # A machine that is busy with other things may need longer to say anything.
    while tally.commits < plan.writers and time.perf_counter() - started < _LONGEST_S:
        await _pass(_STEP_S, tally)
    tally.measuring, ended = False, time.perf_counter()
    after, busy = _cpu(plan), processes.busy_seconds() - busy
    tally.stopping = True
    await asyncio.wait_for(asyncio.gather(*(writer.done for writer in writers)), 60)
    ended_at = time.monotonic()
    for writer in writers:
        writer.close()
    return Told(
        commits=tally.commits,
        requests=tally.commits + tally.conflicts + tally.refused,
        conflicts=tally.conflicts,
        refused=tally.refused,
        seconds=ended - started,
        latencies_ms=_quantiles(tally.latencies),
        cpu_s={name: after[name] - before[name] for name in after},
        busy_s=busy,
        ended_at=ended_at,
        acked={table: len(versions) for table, versions in tally.versions.items()},
    )


async def _pass(seconds: float, tally: Tally) -> None:
    """Let the time pass, but end at once with what has failed."""
    await asyncio.wait([tally.failed], timeout=seconds)
    if tally.failed.done():
        tally.failed.result()


def _cpu(plan: Plan) -> dict[str, float]:
    # Looking at the others' takes some of its own.
    own = time.process_time()
    return {
        "load": own,
        **{name: processes.cpu_seconds(pid) for name, pid in plan.watched.items()},
    }


def _quantiles(latencies: list[float]) -> dict[str, float]:
    if not latencies:
        raise RuntimeError("not one commit was answered in the measured time")
    ordered = sorted(latencies)
    at = {"50": 0.5, "90": 0.9, "99": 0.99, "100": 1.0}
    last = len(ordered) - 1
    return {name: ordered[round(share * last)] * 1000 for name, share in at.items()}


def main() -> None:
    plan = msgspec.json.decode(sys.stdin.buffer.readline(), type=Plan)
    told = uvloop.run(run(plan))
    print(msgspec.json.encode(told).decode(), flush=True)


if __name__ == "__main__":
    main()
