"""A standby becomes the primary, and lacks what had been told."""

from dataclasses import replace

from sqlalchemy.ext.asyncio import AsyncEngine

from tests.service.world import World
from tidegate_service.index.commit_index import PostgresIndex

HASTY_S = 1.0


def hasty(world: World, engine: AsyncEngine) -> World:
    """The same instance with less patience, for what has no answer: a COMMIT that has to reach the
    primary first is given more."""
    index = PostgresIndex(engine, answer_timeout_s=HASTY_S)
    return replace(world, context=replace(world.context, index=index))
