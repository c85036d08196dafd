"""A log that begins without metadata is read within a bound."""

import pytest

from tests.builders.by_x import PROTOCOL, add, metadata, remove
from tests.service.tables.delta_logs import DeltaLog
from tests.service.world import make_world
from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.actions import DomainMetadata, Txn
from tidegate_service.core.errors import Refused
from tidegate_service.core.limits import CommitLimits
from tidegate_service.core.log.loading.beginning import Beginning
from tidegate_service.core.tables.register import RegisterTable, register_table
from tidegate_service.storage import ObjectStorage

pytestmark = pytest.mark.anyio

NAMES = [f"f{number}" for number in range(11)]
DOMAIN = DomainMetadata(domain="x", configuration="1", removed=False)
TXN = Txn(app_id="app", version=1)


def test_what_is_left_of_its_versions():
    begun = Beginning(CommitLimits())
    begun.take([PROTOCOL, add("a"), add("b"), DOMAIN])
    begun.take([remove("a"), TXN, DomainMetadata(domain="x", configuration="1", removed=True)])
    assert list(begun.portions()) == [[PROTOCOL], [add("b"), TXN]]


@pytest.mark.parametrize(("bound", "most"), [("begin_actions", 8), ("begin_bytes", 900)])
async def test_so_much_is_held_before_there_is_metadata(index, tmp_path, bound, most):
    """A version that has it may be as large as any."""
    world = make_world(index, ObjectStorage(warehouse=tmp_path.as_uri()), tmp_path.as_uri())
    world = world.limited(**{bound: most})
    within, beyond = DeltaLog(tmp_path / "within"), DeltaLog(tmp_path / "beyond")
    for log in (within, beyond):
        log.commit(0, PROTOCOL)
        log.commit(1, *map(add, NAMES[:3]))
    within.commit(2, metadata(), *map(add, NAMES[3:]))
    beyond.commit(2, *map(add, NAMES[3:]))
    beyond.commit(3, metadata())
    table, _ = await register_table(
        world.context, RegisterTable(name="main.test.within", location=within.location)
    )
    assert (table.first_version, table.num_files) == (2, len(NAMES))
    with pytest.raises(Refused, match="its first versions have no metaData action, and more") as no:
        await register_table(
            world.context, RegisterTable(name="main.test.beyond", location=beyond.location)
        )
    assert no.value.code is Code.BROKEN_LOG
