"""Store faults, by the proxy between the instances and the S3 server."""

import asyncio
import random
from contextlib import suppress

from tests.chaos.cluster import Cluster
from tests.chaos.nemesis import Damage, Deeds, Pace
from tests.servers.store_proxy import Seen, StoreFault, StoreProxy

OF_PUTS = (
    StoreFault.ANSWER_LOST,
    StoreFault.ERROR_AFTER,
    StoreFault.CUT,
    StoreFault.LOST,
    StoreFault.SLOW_DOWN,
    StoreFault.CONFLICT,
)
OF_READS = (StoreFault.ANSWER_LOST, StoreFault.SLOW_DOWN)
_BATCH = 20
_POLL_S = 0.01
_LATEST_S = 12.0


def store_faults(proxy: StoreProxy, *, of_each: int, late: int) -> Deeds:
    """So many PUTs of commits meet each kind of fault, in random order, and a few reads. `late`
    PUTs are kept and delivered once their instance has given them up."""

    async def deed(cluster: Cluster, pace: Pace, dice: random.Random, damage: Damage) -> None:
        faults = [fault for fault in OF_PUTS for _ in range(of_each)]
        faults.extend([StoreFault.HELD] * late)
        dice.shuffle(faults)
        proxy.script(*(fault for fault in OF_READS for _ in range(of_each // 20)), method="GET")
        delivering = asyncio.create_task(_deliver(proxy, dice))
        try:
            for start in range(0, len(faults), _BATCH):
                batch = faults[start : start + _BATCH]
                until = start + len(batch)
                proxy.script(*batch)
                while len(_met(proxy, "PUT")) < until:
                    await asyncio.sleep(_POLL_S)
        finally:
            delivering.cancel()
            with suppress(asyncio.CancelledError):
                await delivering
            await asyncio.to_thread(proxy.heal)
        for seen in (*_met(proxy, "PUT"), *_met(proxy, "GET")):
            assert seen.fault is not None
            name = f"{seen.method} {seen.fault.name.lower().replace('_', ' ')}"
            damage.store_faults[name] = damage.store_faults.get(name, 0) + 1

    return deed


async def _deliver(proxy: StoreProxy, dice: random.Random) -> None:
    """What is held arrives, some of it while its version is still empty, most of it later."""
    while True:
        await asyncio.sleep(dice.uniform(0.5, _LATEST_S))
        await asyncio.to_thread(proxy.release)


def _met(proxy: StoreProxy, method: str) -> list[Seen]:
    return [seen for seen in proxy.seen if seen.fault is not None and seen.method == method]
