"""K5: the database fails over, to a standby that has every commit and to one that has not.

The first loses nothing. The second may lose what was acknowledged, but never in silence: each table
of which something is lost is found by the instances that saw it committed, or in its log, and is
quarantined, until whoever runs the service has it rebuilt.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import reduce

import httpx

from tests.chaos.cluster import Cluster, cluster
from tests.chaos.nemesis import Damage, Pace
from tests.chaos.running import Outcome, run
from tests.chaos.scenarios import Size, four_tables
from tests.servers.failover import Failover, failover

LAGGING_COMMITS = 25
"""Of what is acknowledged while the standby gets nothing any more."""
PATIENCE_S = 60.0
_POLL_S = 0.02

Deed = Callable[[Cluster, Pace, random.Random, Damage], Awaitable[None]]


async def k5(size: Size, seed: int) -> Outcome:
    """As many failovers of each kind, each of a database of its own."""
    outcomes = [
        await _failed_over(size, seed + number, lagging=lagging)
        for number in range(size.failovers)
        for lagging in (False, True)
    ]
    return reduce(_sum, outcomes)


async def _failed_over(size: Size, seed: int, *, lagging: bool) -> Outcome:
    with failover() as servers:
        async with cluster(2, servers=servers) as made:
            await four_tables(made)
            if not lagging:
                await asyncio.to_thread(servers.wait_for_standby)
            nemeses = [(_fail_over(servers, lagging=lagging), 1)]
            commits = size.failover_commits
            outcome = await run("K5", made, commits=commits, nemeses=nemeses, seed=seed)
    return _judged(outcome) if lagging else outcome


def _judged(outcome: Outcome) -> Outcome:
    """What is wrong with tables that were found set back was told; but for what the new primary
    acknowledged itself, before or after."""
    told = outcome.damage.quarantined
    silent = tuple(one for one in outcome.violations if one.table not in told)
    silent += tuple(one for one in outcome.damage.lost_later if one.table in told)
    short = () if told else ("the failover lost nothing, so there was nothing to find",)
    return replace(outcome, violations=silent, short=(*outcome.short, *short))


def _fail_over(servers: Failover, *, lagging: bool) -> Deed:
    async def deed(cluster: Cluster, pace: Pace, dice: random.Random, damage: Damage) -> None:
        """The primary dies, and its standby takes its place."""
        await pace.next(0)
        await asyncio.sleep(dice.random() * 0.05)
        if lagging:
            await asyncio.to_thread(servers.cut_off)
            until = pace.counts.acked + LAGGING_COMMITS
            while pace.counts.acked < until:
                await asyncio.sleep(_POLL_S)
        await asyncio.to_thread(servers.kill_primary)
        began = time.monotonic()
        await asyncio.to_thread(servers.promote)
        cluster.postgres = servers.standby
        damage.failovers += 1
        for table in cluster.tables:
            if await _is_set_back(cluster, table.name):
                damage.quarantined.add(table.name)
                url = f"{cluster.instances[0].api}/tables/{table.name}/rebuild"
                await _asked(cluster.http, url)
        if lagging:
            # Until it is asked for a decision, the index of any table is what the standby has.
            damage.set_back = (began, time.monotonic())

    return deed


async def _is_set_back(cluster: Cluster, table: str) -> bool:
    """Whether any of the instances finds it so, each of which may have seen what no other has."""
    checking = {"operation": "WRITE", "actions": []}
    found = False
    for instance in cluster.instances:
        answer = await _asked(
            cluster.http, f"{instance.api}/tables/{table}/conflict-check", json=checking
        )
        found |= answer == "table-quarantined"
    return found


async def _asked(http: httpx.AsyncClient, url: str, **body: object) -> str | None:
    """The problem's code, or None, of a call that is made until it is answered for good."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                answer = await http.post(url, **body)
            except httpx.HTTPError:
                continue
            code = None if answer.is_success else answer.json()["code"]
            if code in (None, "table-quarantined"):
                return code
            assert answer.status_code == 503, answer.text
            await asyncio.sleep(_POLL_S)


def _sum(one: Outcome, other: Outcome) -> Outcome:
    for name in ("acked", "replays", "conflicts", "unknown", "aborted", "given_up", "defects"):
        total = getattr(one.counts, name) + getattr(other.counts, name)
        setattr(one.counts, name, total)
    one.damage.failovers += other.damage.failovers
    one.damage.quarantined |= other.damage.quarantined
    return replace(
        one,
        versions=one.versions + other.versions,
        seconds=one.seconds + other.seconds,
        violations=one.violations + other.violations,
        short=one.short + other.short,
    )
