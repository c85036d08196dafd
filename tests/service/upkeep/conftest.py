"""Caretakers over one index and real files."""

from collections.abc import Callable

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from tests.service.world import World
from tidegate_service.background.caretaker import Caretaker
from tidegate_service.core.limits import UpkeepLimits
from tidegate_service.core.observe.faults import FaultPoints
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.store.storage import Storage
from tidegate_service.core.upkeep.clean_up import CleanUp
from tidegate_service.core.upkeep.compaction import Compactions
from tidegate_service.core.upkeep.expired_versions import ExpiredVersions
from tidegate_service.index.upkeep.standing import PostgresUpkeep


@pytest.fixture
def upkeep(engine: AsyncEngine) -> PostgresUpkeep:
    return PostgresUpkeep(engine)


Option = FaultPoints | UpkeepLimits
Caring = Callable[..., Caretaker]
Expiring = Callable[..., Caretaker]
Compacting = Callable[..., Caretaker]


@pytest.fixture
def caring(world: World, index: Index, upkeep: PostgresUpkeep) -> Caring:
    """A caretaker that cleans up, with other options or another storage."""

    def caring(storage: Storage = world.context.storage, **options: Option) -> Caretaker:
        return Caretaker(index, upkeep, [CleanUp(index, upkeep, storage, **options)], share=1)

    return caring


@pytest.fixture
def caretaker(caring: Caring) -> Caretaker:
    return caring()


@pytest.fixture
def expiring(index: Index, upkeep: PostgresUpkeep) -> Expiring:
    """A caretaker that drops what has expired of the index."""

    def expiring(**options: Option) -> Caretaker:
        return Caretaker(index, upkeep, [ExpiredVersions(index, upkeep, **options)], share=1)

    return expiring


@pytest.fixture
def compacting(world: World, index: Index, upkeep: PostgresUpkeep) -> Compacting:
    """A caretaker that compacts, three commits at least unless it is told otherwise."""

    def compacting(commits: int = 3, **options: Option) -> Caretaker:
        job = Compactions(index, world.context.storage, commits=commits, **options)
        return Caretaker(index, upkeep, [job], share=1)

    return compacting
