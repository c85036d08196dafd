"""What is asked of a catalog-managed table whose log or database is in doubt."""

import pytest

from tests.service.catalog_managed.restoring import body
from tests.service.world import World
from tidegate_service.core.commit.propose import conflict_check, propose
from tidegate_service.core.commit.transaction_ids import abort
from tidegate_service.core.maintenance.forget import forget_table
from tidegate_service.core.ports.records import QuarantineCause, TableRecord, TableState
from tidegate_service.core.tables.lookup import get_table


def log_of(world: World, table: TableRecord) -> dict[str, bytes]:
    folder = world.log_folder(table)
    return {file.name: file.read_bytes() for file in folder.glob("*") if file.is_file()}


async def is_closed(world: World, table: TableRecord) -> bool:
    head = await get_table(world.context, table.id)
    return (head.state, head.quarantine_cause) == (TableState.QUARANTINED, QuarantineCause.LOG)


CALLS = {
    "a commit": lambda world, table: propose(world.context, table.name, body("new")),
    "a check": lambda world, table: conflict_check(world.context, table.name, body("new")),
    "an abort": lambda world, table: abort(world.context, table.name, "new"),
    "forgetting it": lambda world, table: forget_table(world.context, table.name),
}


def calls(*names: str) -> pytest.MarkDecorator:
    """These calls, one each."""
    return pytest.mark.parametrize("call", [CALLS[name] for name in names], ids=names)


async def files_of(world: World, table: TableRecord) -> list[object]:
    head = await get_table(world.context, table.id)
    batches = world.context.index.files(table.id, head.latest_version)
    return [file async for batch in batches for file in batch]


async def check_landed(world: World, table: TableRecord, names: dict[str, int]) -> None:
    for name, version in names.items():
        again = await propose(world.context, table.id, body(name))
        assert (again.record.version, again.replayed) == (version, True)
