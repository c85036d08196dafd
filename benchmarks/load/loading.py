"""Loads of commits over HTTP, by the load generator in a process of its own."""

import itertools
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from benchmarks.frame import Figure, Floor, Pair
from benchmarks.load.plan import Kind, Plan, Told
from benchmarks.rig.service import Service, Table
from benchmarks.rig.world import World

_ROOT = Path(__file__).parents[2]
CPU = "CPU µs a commit, {}"
"""A line of a profile, by process."""
_numbers = itertools.count(1)
_POLL_S = 0.01
_DRAINED_WITHIN_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What a load saw (`load_plan.Told`), and how far publishing was behind at its end, in
    versions, and how long it then took, in seconds."""

    told: Told
    unpublished: int
    drained_s: float

    @property
    def commits_per_second(self) -> float:
        return self.told.commits / self.told.seconds

    @property
    def p50_ms(self) -> float:
        return self.told.latencies_ms["50"]

    @property
    def p99_ms(self) -> float:
        return self.told.latencies_ms["99"]

    @property
    def cpu_us(self) -> dict[str, float]:
        """CPU time a commit, by process: `service`, `postgres`, `load`; `s3` where it did
        anything."""
        used = {name: s for name, s in self.told.cpu_s.items() if s > 0 or name != "s3"}
        return {name: 1e6 * s / self.told.commits for name, s in used.items()}

    @property
    def cpu_shares(self) -> dict[str, float]:
        """Of one core, by process; `others` is what else ran on the machine."""
        others = max(0.0, self.told.busy_s - sum(self.told.cpu_s.values()))
        used = {name: self.told.cpu_s[name] for name in self.cpu_us} | {"others": others}
        return {name: seconds / self.told.seconds for name, seconds in used.items()}


def appends(
    world: World, service: Service, tables: Sequence[Table], *, writers: int, seconds: float
) -> Load:
    """Blind appends of one file, by so many writers at once, shared out over the tables."""
    return run(world, service, tables, kind=Kind.APPEND, writers=writers, seconds=seconds)


def overwrites(
    world: World, service: Service, table: Table, *, writers: int, seconds: float
) -> Load:
    """Each writer overwrites its own partition (column `p`) again and again."""
    return run(world, service, [table], kind=Kind.OVERWRITE, writers=writers, seconds=seconds)


def run(
    world: World,
    service: Service,
    tables: Sequence[Table],
    *,
    kind: Kind,
    writers: int,
    seconds: float,
) -> Load:
    """Load the service; raises `RuntimeError` where an answer was not as it has to be, or a
    table has another head than the answers say."""
    host, port = service.address
    plan = Plan(
        host=host,
        port=port,
        tables=tuple(table.name for table in tables),
        kind=kind,
        writers=writers,
        warm_up_s=min(0.5, seconds / 4),
        seconds=seconds,
        name=f"l{os.getpid()}x{next(_numbers)}",
        watched={"service": service.pid, **world.watched},
    )
    before = {table.name: service.head(table)[0] for table in tables}
    told = _told_by_process(plan)
    heads = {table.name: service.head(table) for table in tables}
    for name, (latest, _) in heads.items():
        if latest != before[name] + told.acked[name]:
            raise RuntimeError(
                f"{name} went from version {before[name]} to {latest}, but {told.acked[name]} "
                "commits were acknowledged"
            )
    behind = sum(latest - published for latest, published in heads.values())
    return Load(told=told, unpublished=behind, drained_s=_drained_s(service, tables))


def _told_by_process(plan: Plan) -> Told:
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.load.generator"],
        cwd=_ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(msgspec.json.encode(plan) + b"\n")
            process.stdin.flush()
            if process.stdout.readline() == b"ready\n":
                process.stdin.write(b"go\n")
            told, errors = process.communicate()
        finally:
            process.kill()
    if process.returncode != 0:
        raise RuntimeError(f"the load generator failed: {errors.decode()[-3000:]}")
    return msgspec.json.decode(told, type=Told)


def _drained_s(service: Service, tables: Sequence[Table]) -> float:
    """Wait until every version is published; the next turn has the disk to itself."""
    started = time.monotonic()
    for table in tables:
        while len(set(service.head(table))) > 1:
            if time.monotonic() > started + _DRAINED_WITHIN_S:
                raise RuntimeError(f"{table.name} is not published: {service.head(table)}")
            time.sleep(_POLL_S)
    return time.monotonic() - started


def figure(
    turns: Sequence[tuple[Load, float]], *, name: str, floor: Floor | None, at: float | None = None
) -> Figure:
    """Commits a second against another rate; the profile is of the load of the median rate."""
    middle = sorted((load for load, _ in turns), key=lambda load: load.commits_per_second)
    return Figure(
        name=name,
        unit="commits/s",
        pairs=tuple(Pair(measured=load.commits_per_second, against=rate) for load, rate in turns),
        floor=floor,
        at=at,
        profile=profile(middle[len(middle) // 2]),
    )


def profile(load: Load) -> dict[str, float]:
    return {
        **{CPU.format(name): us for name, us in load.cpu_us.items()},
        **{f"cores used, {name}": share for name, share in load.cpu_shares.items()},
        "p50 of a commit, ms": load.p50_ms,
        "p99 of a commit, ms": load.p99_ms,
        "versions unpublished at the end": load.unpublished,
        "seconds until they were published": load.drained_s,
    }
