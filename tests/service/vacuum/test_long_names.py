"""Names of files that are too long for the index."""

import pytest

from tests.service.log.foreign import foreign_commit
from tests.service.vacuum.test_vacuum import foreign_add
from tests.service.vacuum.vacuuming import left, plant, vacuumed
from tidegate_service.core.errors import Refused
from tidegate_service.core.vacuum.vacuum import Stage

pytestmark = pytest.mark.anyio


async def test_such_a_name_may_be_of_any_file(world):
    table = await world.create()
    plant(table, "a", "orphan")
    foreign_commit(world, table, 1, {"add": foreign_add("./" * 520 + "a")})
    last = (await vacuumed(world, table))[-1]
    assert (last.stage, type(last.error)) == (Stage.FAILED, Refused)
    assert "1024 bytes" in last.error.detail
    assert left(table) == {"a", "orphan"}
    assert not world.log_file(table, 2).exists()


async def test_such_a_name_in_a_clone(world):
    table, clone = await world.create(), await world.create()
    plant(table, "a", "b", "orphan")
    paths = [f"{table.location}/a", f"{table.location}/" + "./" * 520 + "b"]
    foreign_commit(world, clone, 1, *({"add": foreign_add(path)} for path in paths))
    await vacuumed(world, clone)
    last = (await vacuumed(world, table))[-1]
    assert (last.stage, type(last.error)) == (Stage.FAILED, Refused)
    assert left(table) == {"a", "b", "orphan"}
