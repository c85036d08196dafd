"""Who breaks things during a run, one way each. All of them end when they have done enough."""

import asyncio
import random
import signal
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from tests.chaos.cluster import Cluster
from tests.chaos.judging.violations import Violation
from tests.chaos.load import Counts
from tests.service.instances import Deed, Instance
from tidegate_service.core.observe.faults import Side, Step

STOPPED_S = 12.0
"""Longer than Postgres lets a transaction idle (10 s), so that its locks are gone."""
ARMED_S = 5.0
_POLL_S = 0.01
_STEPS = list(Step)


@dataclass(slots=True)
class Damage:
    """What was done, for the report. While the database is `set_back`, reads are of an older
    state; `lost_later` is what was acknowledged from then on, and is lost all the same."""

    kills: int = 0
    kills_at_points: int = 0
    postgres_kills: int = 0
    stops: int = 0
    terms: int = 0
    store_faults: dict[str, int] = field(default_factory=dict)
    foreign: int = 0
    full_disks: dict[str, int] = field(default_factory=dict)
    failovers: int = 0
    quarantined: set[str] = field(default_factory=set)
    set_back: tuple[float, float] | None = None
    lost_later: tuple[Violation, ...] = ()

    def told(self) -> dict[str, int]:
        """What was done, by its name."""
        done = {
            "instance kills": self.kills,
            "of them at a point": self.kills_at_points,
            "Postgres kills": self.postgres_kills,
            f"stops of {STOPPED_S:.0f} s": self.stops,
            "SIGTERM": self.terms,
            "versions written past": self.foreign,
            "failovers": self.failovers,
            "tables found set back": len(self.quarantined),
            **{f"store: {name}": times for name, times in self.store_faults.items()},
            **{f"full disk of {name}": times for name, times in self.full_disks.items()},
        }
        return {name: times for name, times in done.items() if times}


@dataclass(slots=True)
class Pace:
    """Spreads `deeds` evenly over the commits of a run."""

    counts: Counts
    commits: int
    deeds: int

    async def next(self, number: int) -> None:
        """Wait for the moment of deed `number` of 0, 1, ..."""
        until = self.commits * (number + 0.5) / self.deeds
        while self.counts.acked < until:
            await asyncio.sleep(_POLL_S)

    async def end(self) -> None:
        """Wait for the last commit."""
        while self.counts.acked < self.commits:
            await asyncio.sleep(_POLL_S)


Deeds = Callable[[Cluster, Pace, random.Random, Damage], Awaitable[None]]


async def kill_instances(cluster: Cluster, pace: Pace, dice: random.Random, damage: Damage) -> None:
    """SIGKILL to one instance after another: half at any moment, half at a point of a commit."""
    for number in range(pace.deeds):
        await pace.next(number)
        instance = dice.choice(cluster.instances)
        if number % 2 and await _killed_at_a_point(instance, dice):
            damage.kills_at_points += 1
            await cluster.start(instance)
        else:
            await asyncio.sleep(dice.random() * 0.05)
            await cluster.kill(instance)
        damage.kills += 1


async def _killed_at_a_point(instance: Instance, dice: random.Random) -> bool:
    point = dice.choice(_STEPS), dice.choice(list(Side))
    await asyncio.to_thread(instance.arm, *point, Deed.KILL)
    try:
        async with asyncio.timeout(ARMED_S):
            while instance.alive:
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        return False
    return True


async def stop_and_term(cluster: Cluster, pace: Pace, dice: random.Random, damage: Damage) -> None:
    """By turns: SIGSTOP before a commit point for longer than locks last; SIGTERM, and up again."""
    for number in range(pace.deeds):
        await pace.next(number)
        instance = dice.choice(cluster.instances)
        if number % 2:
            instance.signal(signal.SIGTERM)
            code = await asyncio.to_thread(instance.ended)
            assert code == 0, f"an instance that was told to stop ended with {code}"
            await cluster.start(instance)
            damage.terms += 1
            continue
        step = dice.choice([Step.O4_DECIDE, Step.O6_PUT, Step.M5_INSERT, Step.M6_COMMIT])
        await asyncio.to_thread(instance.arm, step, Side.BEFORE, Deed.STOP)
        await asyncio.to_thread(instance.reached)
        await asyncio.sleep(STOPPED_S)
        instance.signal(signal.SIGCONT)
        damage.stops += 1


async def kill_postgres(cluster: Cluster, pace: Pace, dice: random.Random, damage: Damage) -> None:
    """SIGKILL to the database."""
    for number in range(pace.deeds):
        await pace.next(number)
        await asyncio.sleep(dice.random() * 0.05)
        await cluster.kill_postgres()
        damage.postgres_kills += 1


async def write_past(cluster: Cluster, pace: Pace, dice: random.Random, damage: Damage) -> None:
    """A process that appends to the first table with `deltalake`, killed at the end of the run."""
    del dice, damage  # The judge counts what came of it, in the log.
    writer = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.chaos.past_writer",
        cluster.tables[0].location,
    )
    try:
        await pace.end()
        assert writer.returncode is None, "the writer past the service ended by itself"
    finally:
        writer.kill()
        await writer.wait()
