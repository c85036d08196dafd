"""What lies in a new table's way is found."""

import uuid

import pytest

from tests.service.commit.committing import create, new_table
from tidegate_service.core.errors import TableExists

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("there", "new", "is_in_the_way"),
    [
        ("file:///lake/a", "file:///lake/A/b", True),
        ("file:///lake/A/b", "file:///lake/a", True),
        ("file:///lake/a", "file:///lake/a0", False),
        ("file:///lake/a-b", "file:///lake/a", False),
        ("file:///lake/aß/x", "file:///lake/aß", True),
        ("s3://lake/a/b", "s3://lake/a", True),
        ("s3://lake/A", "s3://lake/a/b", False),
        ("s3://lake/a\U0010ffff", "s3://lake/a", False),
    ],
)
async def test_what_is_in_the_way(index, there, new, is_in_the_way):
    # A lake of its own: others' tables stay.
    lake = f"lake/{uuid.uuid4()}/"
    there, new = (place.replace("lake/", lake, 1) for place in (there, new))
    await create(index, table=new_table(location=there))
    made = new_table(location=new)
    if is_in_the_way:
        with pytest.raises(TableExists):
            async with index.creation_section(made):
                pass
    else:
        async with index.creation_section(made) as section:
            assert section.table.latest_version == -1
