"""Caretakers that keep manifests up, as the background of an instance has them."""

from collections.abc import Callable

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from tests.service.world import World
from tidegate_service.background.caretaker import Caretaker, new_name
from tidegate_service.core.hooks.symlink_manifests import SymlinkManifests
from tidegate_service.core.limits import ManifestLimits
from tidegate_service.core.observe.faults import NO_FAULTS, FaultPoints
from tidegate_service.core.observe.telemetry import SILENT, Telemetry
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.store.storage import Storage
from tidegate_service.index.upkeep.standing import PostgresUpkeep

Keeping = Callable[..., Caretaker]


@pytest.fixture
def upkeep(engine: AsyncEngine) -> PostgresUpkeep:
    return PostgresUpkeep(engine)


@pytest.fixture
def keeping(world: World, index: Index, upkeep: PostgresUpkeep) -> Keeping:
    """Makes a caretaker, of another storage or index, or with fault points."""

    def keeping(
        storage: Storage = world.context.storage,
        *,
        of: Index = index,
        faults: FaultPoints = NO_FAULTS,
        telemetry: Telemetry = SILENT,
        limits: ManifestLimits = world.context.manifest_limits,
    ) -> Caretaker:
        name = new_name()
        job = SymlinkManifests(of, upkeep, storage, claimant=name, limits=limits, faults=faults)
        return Caretaker(of, upkeep, [job], share=1, name=name, telemetry=telemetry)

    return keeping


@pytest.fixture
def caretaker(keeping: Keeping) -> Caretaker:
    return keeping()
