"""All that goes on between an instance's requests."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from tidegate_service.background.caretaker import Caretaker, CaretakerLimits, new_name
from tidegate_service.background.publisher import Publisher
from tidegate_service.core.checkpoints.checkpoint import write_checkpoint
from tidegate_service.core.checkpoints.taken_over import TakingOver
from tidegate_service.core.hooks.hook import load_hook
from tidegate_service.core.hooks.runs import EVERY_VERSION, LONGEST_S, RUN_S, HookRuns
from tidegate_service.core.hooks.symlink_manifests import SymlinkManifests
from tidegate_service.core.hooks.which_versions import WhereNamed
from tidegate_service.core.instance.own_logs import OwnLogs
from tidegate_service.core.observe.faults import FaultPoints
from tidegate_service.core.observe.telemetry import Telemetry
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.ports.store.storage import Storage
from tidegate_service.core.ports.upkeep.upkeep import UpkeepIndex
from tidegate_service.core.sharing.pauses import Pauses
from tidegate_service.core.sharing.pools import Pool
from tidegate_service.core.upkeep.checkpoint_interval import Checkpoints
from tidegate_service.core.upkeep.checksums import Checksums
from tidegate_service.core.upkeep.clean_up import CleanUp
from tidegate_service.core.upkeep.compaction import Compactions
from tidegate_service.core.upkeep.expired_versions import ExpiredVersions
from tidegate_service.core.upkeep.job import Job

HOOKS = CaretakerLimits(run_s=RUN_S + 2 * LONGEST_S)
"""The last call of a hook's run may take as long as any."""
MANIFESTS_AT_ONCE = 3
"""Tables whose manifests are made after commits at a time, one of each schema."""
MANIFESTS = CaretakerLimits(run_s_a_file=0.05)
"""A file may be alone in its partition, and have a manifest of its own."""


class Background:
    """The publisher, and caretakers by their names. Each goes on by itself: a hook that takes its
    time holds up its own next runs, and nothing else."""

    def __init__(self, publisher: Publisher, caretakers: Mapping[str, Caretaker]) -> None:
        self._publisher = publisher
        self._caretakers = caretakers

    def wake(self, table_id: str) -> None:
        """Have the table looked at soon: something was committed to it."""
        self._publisher.wake(table_id)
        for caretaker in self._caretakers.values():
            caretaker.wake(table_id)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """It goes on as long as the context lasts."""
        tasks = [asyncio.create_task(self._publisher.run_on(), name="publisher")]
        tasks += [
            asyncio.create_task(caretaker.run_on(), name=name)
            for name, caretaker in self._caretakers.items()
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def background_of(
    index: Index,
    upkeep: UpkeepIndex,
    storage: Storage,
    *,
    publish_interval_s: float,
    upkeep_share: float,
    most_behind: int,
    commits_to_compact: int,
    hooks: Sequence[str],
    table_hooks: Sequence[str],
    store_of: Callable[[str], str],
    pauses: Pauses,
    faults: FaultPoints,
    telemetry: Telemetry,
    own: OwnLogs,
) -> Background:
    """Of one instance; what the values mean is said by the publisher and the caretaker. With an
    `upkeep_share` of 0 there is no caretaker of logs, and none of manifests; with
    `commits_to_compact` of 0 no compacted files are written. Raises `ValueError` where one of the
    hooks cannot be made."""
    publisher = Publisher(
        index,
        storage,
        interval_s=publish_interval_s,
        store_of=store_of,
        pauses=pauses,
        own=own,
        faults=faults,
        telemetry=telemetry,
    )
    caretakers: dict[str, Caretaker] = {}
    threads = Pool("hooks", 1)
    for name in dict.fromkeys((*hooks, *table_hooks)):
        hook, enabled_ms = load_hook(name), await upkeep.enable_hook(name)
        which = EVERY_VERSION if name in hooks else WhereNamed(name, index, upkeep)
        runs = HookRuns(
            name, hook, index, storage, threads, enabled_ms=enabled_ms, which=which, faults=faults
        )
        if name in hooks:
            await upkeep.awaken(runs.kind)
        # What a hook takes of the instance's time is its own affair.
        caretakers[runs.kind] = Caretaker(
            index, upkeep, [runs], share=1, telemetry=telemetry, limits=HOOKS
        )
    if not upkeep_share:
        return Background(publisher, caretakers)
    name = new_name()
    manifests = SymlinkManifests(index, upkeep, storage, claimant=name, faults=faults)
    first: Caretaker | None = None
    for number in range(MANIFESTS_AT_ONCE):
        # Beside the other one: a table with very many partitions holds up no checkpoint. And of
        # several: it holds up no other schema's manifests.
        made = Caretaker(
            index,
            upkeep,
            [manifests],
            share=upkeep_share,
            telemetry=telemetry,
            name=name,
            limits=MANIFESTS,
            beside=first,
            at_once=MANIFESTS_AT_ONCE,
        )
        first = first or made
        caretakers[f"{manifests.kind}-{number}"] = made

    async def write(table: TableRecord) -> int:
        written = await write_checkpoint(
            index, storage, table, taking_over=TakingOver(), faults=faults
        )
        return written.version

    jobs: list[Job] = [
        Checkpoints(write),
        Checksums(upkeep, storage, faults=faults),
        CleanUp(index, upkeep, storage, faults=faults, telemetry=telemetry),
        ExpiredVersions(index, upkeep, faults=faults),
    ]
    if commits_to_compact:
        jobs.append(Compactions(index, storage, commits=commits_to_compact, faults=faults))
    caretakers["caretaker"] = Caretaker(
        index, upkeep, jobs, share=upkeep_share, most_behind=most_behind, telemetry=telemetry
    )
    return Background(publisher, caretakers)
