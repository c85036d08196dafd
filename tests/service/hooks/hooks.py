"""Hooks that are easily looked at, and a caretaker that runs one."""

import asyncio
from collections.abc import Callable

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from tidegate_service.background.caretaker import Caretaker
from tidegate_service.core.hooks.hook import Hook, HookCommit
from tidegate_service.core.hooks.runs import EVERY_VERSION, HookRuns
from tidegate_service.core.hooks.which_versions import WhichVersions
from tidegate_service.core.observe.faults import NO_FAULTS, FaultPoints
from tidegate_service.core.observe.telemetry import HOOK, SILENT, Telemetry
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.store.storage import Storage
from tidegate_service.core.sharing.pools import Pool
from tidegate_service.index.upkeep.standing import PostgresUpkeep

NAME = "noting"
KIND = HOOK + NAME


class Noting:
    """Notes what it is called for. `meets` may raise, before or after it notes."""

    def __init__(self, meets: Callable[[HookCommit], None] = lambda commit: None) -> None:
        self.meets = meets
        self.commits: list[HookCommit] = []
        self.takes_s = 0.0

    async def run(self, commit: HookCommit) -> None:
        self.meets(commit)
        self.commits.append(commit)
        await asyncio.sleep(self.takes_s)

    def versions(self, table_id: str) -> list[int]:
        return [commit.version for commit in self.commits if commit.table_id == table_id]


async def caretaker_of(
    hook: Hook,
    index: Index,
    upkeep: PostgresUpkeep,
    storage: Storage,
    *,
    which: WhichVersions = EVERY_VERSION,
    telemetry: Telemetry = SILENT,
    faults: FaultPoints = NO_FAULTS,
    **limits: float,
) -> Caretaker:
    """As the background of an instance has it."""
    enabled_ms = await upkeep.enable_hook(NAME)
    # What is committed next is dated later.
    await asyncio.sleep(0.005)
    options = {"enabled_ms": enabled_ms, "which": which, "faults": faults, **limits}
    runs = HookRuns(NAME, hook, index, storage, Pool("hooks", 1), **options)
    return Caretaker(index, upkeep, [runs], share=1, telemetry=telemetry)


async def age(engine: AsyncEngine) -> None:
    """Let claims and waits be over."""
    async with engine.begin() as connection:
        await connection.execute(
            text(
                "UPDATE table_upkeep SET due_at = due_at - interval '2 hours', "
                "claimed_until = claimed_until - interval '2 hours'"
            )
        )
