"""K13: nothing fails, and nothing grows. What instances hold is sampled under a steady load.

Of four quarters of the time the first one warms up: it fills pools and what is kept of winners.
What is held then, in the middle of the second quarter's samples, is compared with the last's.
"""

import asyncio
import random
import time
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median

import psycopg

from tests.chaos.cluster import Cluster
from tests.chaos.nemesis import Damage, Pace
from tests.service.instances import Instance

GROWTH = 0.1
"""The share by which the last quarter's median may be above the second's."""
SAMPLES = 240
"""In the whole time."""
QUARTERS = 4
_CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
_LAG = "SELECT coalesce(max(latest_version - published_version), 0) FROM tables"


@dataclass(frozen=True, slots=True)
class Measure:
    """`slack` is what it may be above the second quarter whatever that was, in its unit."""

    name: str
    unit: str
    slack: float


MEMORY = Measure("memory of an instance", "MiB", 4)
DESCRIPTORS = Measure("descriptors of an instance", "", 4)
CONNECTIONS = Measure("connections to Postgres", "", 2)
LAG = Measure("versions to publish", "", 100)


@dataclass(slots=True)
class Samples:
    """What was measured, in order; of an instance by its number."""

    of: dict[tuple[Measure, int], list[float]] = field(default_factory=dict)

    def take(self, measure: Measure, number: int, value: float) -> None:
        self.of.setdefault((measure, number), []).append(value)

    def told(self) -> tuple[str, ...]:
        """A line for each measure: the medians of the quarters."""
        return tuple(
            f"{_label(measure, number)}: medians of the quarters "
            + ", ".join(f"{each:.0f}" for each in quarters(values))
            + (f" {measure.unit}" if measure.unit else "")
            for (measure, number), values in self.of.items()
        )

    def growing(self) -> tuple[str, ...]:
        """What grew by more than `GROWTH` and the measure's slack; empty where all is flat."""
        return tuple(
            f"{_label(measure, number)} grew from {second:.0f} to {last:.0f} {measure.unit}".strip()
            for (measure, number), values in self.of.items()
            for _, second, _, last in [quarters(values)]
            if last > second * (1 + GROWTH) + measure.slack
        )


def quarters(values: list[float]) -> list[float]:
    """The medians of the four quarters of at least four samples."""
    assert len(values) >= QUARTERS, f"{len(values)} samples; expected at least {QUARTERS}"
    ends = [len(values) * quarter // QUARTERS for quarter in range(QUARTERS + 1)]
    return [median(values[start:end]) for start, end in pairwise(ends)]


@dataclass(slots=True)
class Soak:
    """A nemesis that breaks nothing: it measures for that long."""

    seconds: float
    samples: Samples = field(default_factory=Samples)

    async def __call__(
        self, cluster: Cluster, pace: Pace, dice: random.Random, damage: Damage
    ) -> None:
        del pace, dice, damage
        began = time.monotonic()
        async with await psycopg.AsyncConnection.connect(
            cluster.postgres.url, autocommit=True
        ) as connection:
            for number in range(SAMPLES):
                await asyncio.sleep(
                    max(0.0, began + self.seconds * (number + 1) / SAMPLES - time.monotonic())
                )
                await self._sample(cluster.instances, connection)

    async def _sample(self, instances: list[Instance], connection: psycopg.AsyncConnection) -> None:
        for number, instance in enumerate(instances):
            self.samples.take(MEMORY, number, resident_mib(instance.pid))
            self.samples.take(DESCRIPTORS, number, descriptors(instance.pid))
        for measure, query in ((CONNECTIONS, _CONNECTIONS), (LAG, _LAG)):
            row = await (await connection.execute(query)).fetchone()
            assert row is not None
            self.samples.take(measure, 0, float(row[0]))


def resident_mib(pid: int) -> float:
    """The memory that a process holds. Linux."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "VmRSS":
            return int(value.split()[0]) / 1024
    raise AssertionError(f"process {pid} tells no VmRSS")


def descriptors(pid: int) -> int:
    """How many files, sockets and pipes a process has open. Linux."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def _label(measure: Measure, number: int) -> str:
    of_instance = measure in (MEMORY, DESCRIPTORS)
    return f"{measure.name} {number}" if of_instance else measure.name
