"""B9: one commit of a million files."""

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from benchmarks.frame import Bench, Figure, Limit, Pair, Result, Scale, at_least, at_most
from benchmarks.load.asking import NDJSON, Connection
from benchmarks.rig import large_tables, processes
from benchmarks.rig.large_tables import commits_url, proposal_lines
from benchmarks.rig.service import Service, succeeded
from benchmarks.rig.world import World
from benchmarks.rivals import deltalake_commit

_MOST_MB = 1024
_MB = 1 << 20
_WARM_UP = 20_000
_PHASE = re.compile(r'^tidegate_commit_phase_seconds_sum\{phase="(\w+)"\} (\S+)$', re.M)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Commit:
    """How long it took from the request's first byte to the answer's last, and what it used."""

    seconds: float
    peak_bytes: int
    profile: dict[str, float]


def run(world: World, scale: Scale) -> Result:
    files = scale.pick(quick=20_000, full=1_000_000)
    body = world.new_folder() / "body.ndjson"
    with body.open("wb") as written:
        written.writelines(proposal_lines("million", first=0, count=files))
    theirs: list[deltalake_commit.Told] = []
    ours: dict[str, list[_Commit]] = {"plain": [], "catalog-managed": []}
    for _ in range(scale.runs):
        theirs.append(_by_deltalake(world, files))
        for kind, commits in ours.items():
            commits.append(_by_service(world, body, catalog_managed=kind == "catalog-managed"))
    against = [files / told.seconds for told in theirs]
    return Result(
        figures=tuple(
            _figure(f"{kind}, {files:,} files", commits, against, files)
            for kind, commits in ours.items()
        ),
        limits=tuple(
            Limit(
                name=f"peak memory of the service, {kind}",
                unit="MB",
                values=tuple(commit.peak_bytes / _MB for commit in commits),
                floor=at_most(_MOST_MB),
            )
            for kind, commits in ours.items()
        ),
        notes=(_note(body, theirs),),
    )


def _by_deltalake(world: World, files: int) -> deltalake_commit.Told:
    folder = world.new_folder()
    told = deltalake_commit.told(folder, files=files)
    shutil.rmtree(folder)
    return told


def _by_service(world: World, body: Path, *, catalog_managed: bool) -> _Commit:
    """On a new database with a new instance, whose peak of memory is then the commit's."""
    # What the turn before left for Postgres and the disk to do is not this turn's.
    large_tables.settle(world.postgres.url)
    with world.serving() as service:
        database_url = service.database_url
        table = service.create_table(catalog_managed=False, partition_columns=("p",))
        large_tables.grow_files(service, table, files=_WARM_UP, commits=1, name="warm-up")
        table = service.create_table(catalog_managed=catalog_managed, partition_columns=("p",))
        large_tables.settle(database_url)
        before = _used(world, service)
        with Connection(service) as connection:
            asked = connection.post_file(commits_url(table), body, expected=201, kind=NDJSON)
        profile = {name: at - before[name] for name, at in _used(world, service).items()}
        peak = processes.peak_rss_bytes(service.pid)
    _drop(world, database_url)
    shutil.rmtree(large_tables.log_folder(table))
    return _Commit(seconds=asked.seconds, peak_bytes=peak, profile=profile)


def _used(world: World, service: Service) -> dict[str, float]:
    """CPU seconds by process, and what the service says of the parts of its commits."""
    metrics = succeeded(service.http.get(f"{service.url}/metrics")).text
    return {
        "CPU s, service": service.cpu_seconds(),
        "CPU s, postgres": world.postgres_cpu_seconds(),
        **{f"s in {phase}": float(sum_) for phase, sum_ in _PHASE.findall(metrics)},
    }


def _drop(world: World, database_url: str) -> None:
    name = conninfo_to_dict(database_url)["dbname"]
    with psycopg.connect(world.postgres.url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _figure(name: str, commits: Sequence[_Commit], against: Sequence[float], files: int) -> Figure:
    middle = sorted(commits, key=lambda commit: commit.seconds)[len(commits) // 2]
    return Figure(
        name=name,
        unit="files/s",
        pairs=tuple(
            Pair(measured=files / commit.seconds, against=rate)
            for commit, rate in zip(commits, against, strict=True)
        ),
        floor=at_least(1.0),
        profile={"seconds": middle.seconds, **middle.profile},
    )


def _note(body: Path, theirs: Sequence[deltalake_commit.Told]) -> str:
    middle = sorted(theirs, key=lambda told: told.seconds)[len(theirs) // 2]
    return (
        f"The service gets {body.stat().st_size / _MB:,.0f} MB of NDJSON over HTTP and is timed "
        "from the request's first byte to the answer's last. deltalake "
        f"({middle.seconds:.1f} s, {middle.cpu_s:.1f} s of CPU time, {middle.log_bytes / _MB:,.0f} "
        f"MB of log, a peak of {middle.peak_bytes / _MB:,.0f} MB in its process) gets its own "
        f"objects of the same actions, whose making ({middle.making_s:.1f} s) is not counted, "
        "writes the log and nothing else: no checkpoint, no clean-up. Every turn has a new table, "
        f"and the service a new database and instance that took {_WARM_UP:,} files before."
    )


BENCH = Bench(
    id="b9",
    title="one large commit",
    measured="one commit of many adds with statistics, as NDJSON over HTTP, and the service's "
    "peak of memory",
    against="deltalake writing the same commit to the log, in a process of its own",
    run=run,
)
