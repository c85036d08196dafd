"""Tables whose checkpoints are long, and their compacted files."""

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.upkeep.checkpointed import checkpointed, names
from tests.service.world import World
from tidegate_protocol.log.file_names import CompactedFile, parse
from tidegate_service.background.publisher import Publisher
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.ports.records import TableRecord

MANY = 50
"""Files of a table that a checkpoint is long of."""


async def large(world: World, *, catalog_managed: bool = False) -> TableRecord:
    """A table with a checkpoint of version 1."""
    table = await world.create(catalog_managed=catalog_managed)
    files = [add(f"first-{number}") for number in range(MANY)]
    await propose(world.context, table.id, proposal(*files))
    await Publisher(world.context.index, world.context.storage).round()
    await checkpointed(world, table)
    return table


async def commit(world: World, table: TableRecord, count: int) -> None:
    """Versions that are published."""
    for _ in range(count):
        await propose(world.context, table.id, proposal(add(world.context.new_id())))
    await Publisher(world.context.index, world.context.storage).round()


def written(table: TableRecord) -> list[tuple[int, int]]:
    """The ranges of the compacted files that are there."""
    found = [parse(name) for name in names(table, "*.compacted.json")]
    return [(each.start, each.end) for each in found if isinstance(each, CompactedFile)]
