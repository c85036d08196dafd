"""Names that other tables give to a table's files are found, whichever way they are spelled."""

import pytest

from tests.builders.by_x import add
from tests.service.commit.committing import create

pytestmark = pytest.mark.anyio


async def test_other_tables_names_however_they_are_spelled(index):
    """Those that a listing below a place may show, as a vacuum there has to know them."""
    usual, odd = "file:///w/t/a", ["file:///w//t/b", "file:///w/./t/c", "S3://bucket/t/d"]
    elsewhere = "file:///elsewhere/e"
    table = await create(index, *(add(path) for path in (usual, *odd, elsewhere)))
    found = await index.named_otherwise(table.id, after=-1, most=10, prefix="/w/t/")
    names = {path.rpartition("/")[2] for path in found.paths}
    assert names == {"a", "b", "c", "d"}
