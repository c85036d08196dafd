"""The runs of `make chaos`, by the figures they are for (docs/faults.md)."""

import asyncio
import itertools
import tempfile
import time
from dataclasses import dataclass, fields, replace
from pathlib import Path

from demo.s3_server import S3Server
from tests.chaos.cluster import Cluster, cluster
from tests.chaos.full_disk import fill_disks, two_small_disks
from tests.chaos.load import Counts
from tests.chaos.nemesis import Damage, kill_instances, kill_postgres, stop_and_term, write_past
from tests.chaos.running import Outcome, run
from tests.chaos.soak import Soak
from tests.chaos.store_faults import store_faults
from tests.servers.store_proxy import StoreProxy
from tests.service.process.killed.crashing import crash_and_retry, pair
from tidegate_service.core.observe.faults import Side, Step
from tidegate_service.index.embedded.server import EmbeddedPostgres
from tidegate_service.index.postgres import migrate

FOREIGN_SHARE = 0.02
"""Of K6's commits, the least that the writer past the service has to have made."""


FINISHED_S = 30.0
"""How long a file may be unfinished, at most."""
SOAK_PAUSE_S = 0.1
"""Of each of K13's clients after each work: the load is steady, not the highest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much of each run."""

    commits: int
    instance_kills: int
    postgres_commits: int
    postgres_kills: int
    stop_commits: int
    stops: int
    faults_of_each: int
    late_puts: int
    foreign_commits: int
    crash_rounds: int
    full_disk_commits: int
    full_disks: int
    soak_seconds: int
    failover_commits: int
    failovers: int

    def scaled(self, share: float) -> "Size":
        """That share of everything, at least one of each."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return Size(**{name: max(1, round(value * share)) for name, value in values.items()})


FULL = Size(
    commits=10_000,
    instance_kills=60,
    postgres_commits=10_000,
    postgres_kills=15,
    stop_commits=1_000,
    stops=6,
    faults_of_each=1_000,
    late_puts=30,
    foreign_commits=2_000,
    crash_rounds=10,
    full_disk_commits=1_000,
    full_disks=8,
    soak_seconds=600,
    failover_commits=2_000,
    failovers=2,
)
RELEASE = Size(
    commits=200_000,
    instance_kills=1_000,
    postgres_commits=100_000,
    postgres_kills=300,
    stop_commits=10_000,
    stops=60,
    faults_of_each=20_000,
    late_puts=300,
    foreign_commits=50_000,
    crash_rounds=110,
    full_disk_commits=10_000,
    full_disks=80,
    soak_seconds=3_600,
    failover_commits=20_000,
    failovers=20,
)
"""Before a release: hours."""
QUICK = Size(
    commits=120,
    instance_kills=4,
    postgres_commits=60,
    postgres_kills=1,
    stop_commits=60,
    stops=2,
    faults_of_each=20,
    late_puts=2,
    foreign_commits=150,
    crash_rounds=1,
    full_disk_commits=60,
    full_disks=2,
    soak_seconds=20,
    failover_commits=120,
    failovers=1,
)


async def four_tables(made: Cluster) -> None:
    for number in range(2):
        await made.create(f"main.chaos.plain{number}", catalog_managed=False)
        await made.create(f"main.chaos.managed{number}", catalog_managed=True)


async def k1(size: Size, seed: int) -> Outcome:
    """Instances die; both kinds of table; clients ask one instance after another."""
    async with cluster(3) as made:
        await four_tables(made)
        nemeses = [(kill_instances, size.instance_kills)]
        return await run("K1", made, commits=size.commits, nemeses=nemeses, seed=seed)


async def k2(size: Size, seed: int) -> Outcome:
    """The database dies."""
    async with cluster(3) as made:
        await four_tables(made)
        nemeses = [(kill_postgres, size.postgres_kills)]
        return await run("K2", made, commits=size.postgres_commits, nemeses=nemeses, seed=seed)


async def stops(size: Size, seed: int) -> Outcome:
    """Instances stop for longer than their locks last, and are told to end."""
    async with cluster(3) as made:
        await four_tables(made)
        nemeses = [(stop_and_term, size.stops)]
        return await run("stops", made, commits=size.stop_commits, nemeses=nemeses, seed=seed)


async def k4(size: Size, seed: int) -> Outcome:
    """The store loses, delays and forges answers."""
    with (
        tempfile.TemporaryDirectory(prefix="tidegate-s3-", dir="/tmp") as folder,
        S3Server(Path(folder)) as server,
        StoreProxy(server) as proxy,
    ):
        async with cluster(
            2,
            warehouse=server.new_prefix(),
            service_options=proxy.storage_options,
            storage_options=server.storage_options,
        ) as made:
            await four_tables(made)
            deed = store_faults(proxy, of_each=size.faults_of_each, late=size.late_puts)
            commits = size.faults_of_each
            return await run("K4", made, commits=commits, nemeses=[(deed, 1)], seed=seed)


async def k6(size: Size, seed: int) -> Outcome:
    """`deltalake` writes past two instances into a plain table."""
    async with cluster(2) as made:
        await made.create("main.chaos.plain", catalog_managed=False)
        nemeses = [(write_past, 1)]
        outcome = await run("K6", made, commits=size.foreign_commits, nemeses=nemeses, seed=seed)
    needed = round(size.foreign_commits * FOREIGN_SHARE)
    if outcome.damage.foreign >= needed:
        return outcome
    return replace(outcome, short=(f"fewer than {needed} versions were written past",))


async def full_disk(size: Size, seed: int) -> Outcome:
    """The tables' disk and Postgres' are full for a while. Raises `NoDisks`."""
    with two_small_disks() as folder:
        async with cluster(2, folder=folder) as made:
            await four_tables(made)
            nemeses = [(fill_disks, size.full_disks)]
            outcome = await run(
                "full disks", made, commits=size.full_disk_commits, nemeses=nemeses, seed=seed
            )
            left = await _left_over(folder / "data")
    short = (f"files are left over: {left}",) if left else ()
    return replace(outcome, short=outcome.short + short)


async def _left_over(data: Path) -> list[str]:
    """The unfinished files that stay there. The upkeep of a log goes on, and has some for a
    moment."""
    until = time.monotonic() + FINISHED_S
    left = {path.name for path in data.rglob("*.tmp")}
    while left and time.monotonic() < until:
        await asyncio.sleep(0.1)
        left &= {path.name for path in data.rglob("*.tmp")}
    return sorted(left)


async def k13(size: Size, seed: int) -> Outcome:
    """Nothing fails for long, and nothing grows."""
    async with cluster(2) as made:
        await made.create("main.chaos.plain", catalog_managed=False)
        await made.create("main.chaos.managed", catalog_managed=True)
        soak = Soak(size.soak_seconds)
        outcome = await run(
            "K13", made, commits=1, nemeses=[(soak, 1)], seed=seed, pause_s=SOAK_PAUSE_S
        )
    samples = soak.samples
    return replace(outcome, short=outcome.short + samples.growing(), figures=samples.told())


async def k3(size: Size, seed: int) -> Outcome:
    """kill -9 at every point of both kinds of commit, before and after it, and the same again."""
    del seed
    return await asyncio.to_thread(_k3, size.crash_rounds)


def _k3(rounds: int) -> Outcome:
    started, crashes, acked = time.monotonic(), 0, 0
    with (
        tempfile.TemporaryDirectory(prefix="tidegate-", dir="/tmp") as folder,
        EmbeddedPostgres(Path(folder)) as postgres,
    ):
        migrate.upgrade(postgres.url)
        with pair(postgres.url, Path(folder) / "data") as two:
            for _ in range(rounds):
                tables = {kind: two.create(catalog_managed=kind == "M") for kind in "MO"}
                for step, side in itertools.product(Step, Side):
                    acked += crash_and_retry(two, tables[step[0]], step, side)
                    crashes += 1
    return Outcome(
        name="K3",
        counts=Counts(acked=acked),
        damage=Damage(kills=crashes, kills_at_points=crashes),
        versions=acked,
        seconds=time.monotonic() - started,
        violations=(),
    )
