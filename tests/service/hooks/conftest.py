"""The index's upkeep, for hooks."""

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from tidegate_service.index.upkeep.standing import PostgresUpkeep


@pytest.fixture
def upkeep(engine: AsyncEngine) -> PostgresUpkeep:
    return PostgresUpkeep(engine)
