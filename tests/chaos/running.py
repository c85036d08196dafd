"""One run: clients under whom something breaks, and the judge's word on what came of it."""

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass

from tests.chaos.cluster import Cluster, urls
from tests.chaos.judging.checker import check
from tests.chaos.judging.history import History, Looked, Proposed
from tests.chaos.judging.log_reading import read_log
from tests.chaos.judging.violations import Kind, Violation
from tests.chaos.load import Counts, Load
from tests.chaos.nemesis import Damage, Deeds, Pace

CLIENTS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Of one run. `short` says what of its aim was not reached, empty where all was; `figures`
    are lines of what was measured."""

    name: str
    counts: Counts
    damage: Damage
    versions: int
    seconds: float
    violations: tuple[Violation, ...]
    short: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        return not self.violations and not self.short

    def report(self) -> str:
        counts, damage = self.counts, self.damage
        kinds = [violation.kind for violation in self.violations]
        lines = [
            f"{self.name}: {'good' if self.good else 'BAD'} in {self.seconds:.0f} s",
            f"  commits acked {counts.acked}, replayed {counts.replays}, conflicts "
            f"{counts.conflicts}, unknown {counts.unknown}, aborted {counts.aborted}; "
            f"versions {self.versions}",
            "  " + (", ".join(f"{n} {times}" for n, times in damage.told().items()) or "no damage"),
            f"  lost {kinds.count(Kind.LOST)}, duplicated {kinds.count(Kind.DUPLICATE)}, "
            f"false answers {kinds.count(Kind.LANDED_AFTER_ALL)}, others "
            f"{len(kinds) - sum(kinds.count(kind) for kind in _COUNTED)}",
            *(f"  {figure}" for figure in self.figures),
            *(f"  short: {what}" for what in self.short),
            *(f"  {v.kind.name} in {v.table}: {v.detail}" for v in self.violations[:20]),
        ]
        return "\n".join(lines)


_COUNTED = (Kind.LOST, Kind.DUPLICATE, Kind.LANDED_AFTER_ALL)


async def run(
    name: str,
    cluster: Cluster,
    *,
    commits: int,
    nemeses: Sequence[tuple[Deeds, int]],
    seed: int,
    clients: int = CLIENTS,
    pause_s: float = 0.0,
) -> Outcome:
    """Have the clients commit that often while each nemesis does its number of deeds. A client
    rests for `pause_s` after each work."""
    started = time.monotonic()
    history, damage = History(), Damage()
    load = Load(
        urls=urls(cluster.instances),
        tables=[table.name for table in cluster.tables],
        history=history,
        seed=seed,
        http=cluster.http,
        pause_s=pause_s,
    )
    async with asyncio.TaskGroup() as clients_at_work:
        for number in range(clients):
            clients_at_work.create_task(load.client(number))
        async with asyncio.TaskGroup() as breaking:
            for number, (deed, times) in enumerate(nemeses):
                pace = Pace(load.counts, commits, times)
                dice = random.Random(seed * 100 + number)
                breaking.create_task(deed(cluster, pace, dice, damage))
        await Pace(load.counts, commits, 1).end()
        load.stop.set()
    history.finals = await cluster.finals()
    if damage.set_back is not None:
        began, ended = damage.set_back
        history.calls = [
            call
            for call in history.calls
            if not isinstance(call, Looked) or call.answered < began or call.sent > ended
        ]
        later = [call for call in history.calls if isinstance(call, Proposed) and call.sent > began]
        damage.lost_later = tuple(
            one
            for one in check(History(calls=[*later], finals=history.finals))
            if one.kind is Kind.LOST
        )
    violations = check(history)
    for final in history.finals.values():
        damage.foreign += sum(commit.id is None for commit in read_log(final.log))
    wrong = {"answers 500": load.counts.defects, "works given up": load.counts.given_up}
    return Outcome(
        name=name,
        counts=load.counts,
        damage=damage,
        versions=sum(len(final.log) for final in history.finals.values()),
        seconds=time.monotonic() - started,
        violations=tuple(violations),
        short=tuple(f"{times} {what}" for what, times in wrong.items() if times),
    )
