"""`/metrics`: what was counted, and how things stand at this moment."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from tidegate_service.core.errors import ServiceError
from tidegate_service.core.ports.gauges import Census, PoolUse
from tidegate_service.telemetry.metrics import kind_of

CENSUS_AGE_S = 10.0
"""How old an answer about all tables may be: it costs a query of each of them."""
CENSUS_DEADLINE_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruments:
    """Where the gauges are read. `census` asks the index and may raise a `ServiceError`; the
    rest is this process's own. `sections` are the commit sections under way, `waiting` those
    commits that have not got their turn."""

    census: Callable[[], Awaitable[Census]]
    pool: Callable[[], PoolUse]
    under_way: Callable[[], int]
    sections: Callable[[], int]
    waiting: Callable[[], int]


class Exposition:
    """The text of `/metrics`. Any number of scrapers cost the index one census in ten seconds."""

    def __init__(self, registry: CollectorRegistry, instruments: Instruments) -> None:
        self.registry = registry
        self._instruments = instruments
        self._gauges = _Gauges(instruments)
        registry.register(self._gauges)
        self._asked_at: float | None = None
        self._asking = asyncio.Lock()

    async def text(self, exposed: CollectorRegistry | None = None) -> bytes:
        """In Prometheus's text format, of `exposed` where that is given, which shows the own
        registry in another form. A silent index is a gauge of its own, not an error."""
        async with self._asking:
            now = time.monotonic()
            if self._asked_at is None or now - self._asked_at >= CENSUS_AGE_S:
                self._gauges.census = await self._census()
                self._asked_at = now
        return generate_latest(exposed or self.registry)

    async def _census(self) -> Census | None:
        try:
            async with asyncio.timeout(CENSUS_DEADLINE_S):
                return await self._instruments.census()
        except (ServiceError, TimeoutError):
            return None


class _Gauges(Collector):
    """Read when the registry is. Without a census, what only the index knows is absent."""

    def __init__(self, instruments: Instruments) -> None:
        self._instruments = instruments
        self.census: Census | None = None

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Nothing: the registry would otherwise read the gauges to learn their names."""
        return ()

    def collect(self) -> Iterable[GaugeMetricFamily]:
        yield from self._own()
        yield _gauge(
            "tidegate_index_up", "1 where the index answered when it was last asked.", self._up()
        )
        if self.census is not None:
            yield from _of_census(self.census)

    def _up(self) -> int:
        return int(self.census is not None)

    def _own(self) -> Iterable[GaugeMetricFamily]:
        read = self._instruments
        yield _gauge("tidegate_requests_in_flight", "Requests under way.", read.under_way())
        yield _gauge("tidegate_commit_sections", "Proposals under way.", read.sections())
        yield _gauge(
            "tidegate_commit_queue_depth",
            "Proposals that wait in this process for an earlier one of their table.",
            read.waiting(),
        )
        pool = read.pool()
        yield _gauge("tidegate_pool_size", "Connections to the index that are kept.", pool.size)
        yield _gauge("tidegate_pool_overflow", "Connections beyond those, open now.", pool.overflow)
        connections = GaugeMetricFamily(
            "tidegate_pool_connections", "Open connections to the index.", labels=["state"]
        )
        connections.add_metric(["in-use"], pool.in_use)
        connections.add_metric(["idle"], pool.idle)
        yield connections


def _of_census(census: Census) -> Iterable[GaugeMetricFamily]:
    tables = GaugeMetricFamily("tidegate_tables", "Tables.", labels=["kind", "state"])
    for (managed, state), count in sorted(census.tables.items()):
        tables.add_metric([kind_of(managed), state.value], count)
    yield tables
    yield _gauge(
        "tidegate_unpublished_versions",
        "Ratified versions that are not in their logs yet.",
        census.unpublished,
    )
    yield _gauge(
        "tidegate_publish_lag_seconds",
        "How long the oldest of them has waited.",
        census.publish_lag_s,
    )


def _gauge(name: str, meaning: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, meaning, value=value)
