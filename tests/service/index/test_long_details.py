"""What a commit of another writer says for the history alone, beyond what a proposal may say."""

import pytest

from tests.service.commit.committing import create, ratified
from tidegate_service.index.rows.commit_rows import LONG_DETAILS, MANY_DETAILS

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "metrics",
    [{"a": "a" * LONG_DETAILS}, {str(number): number for number in range(MANY_DETAILS)}],
    ids=["long", "many"],
)
async def test_what_a_foreign_commit_says_at_length_stays_in_the_log(index, metrics):
    table = await create(index)
    told = {"operation": "MERGE", "tags": {"a": "1"}, "foreign": True}
    async with index.commit_section(table.id) as section:
        await section.append(ratified(1, operation_metrics=metrics, **told))
        await section.append(ratified(2, operation_metrics={"a": 1}, **told))
        await section.save()
    cut, whole = [await index.commit(table.id, version) for version in (1, 2)]
    assert (cut.operation, cut.operation_metrics, cut.tags) == ("MERGE", {}, {})
    assert (whole.operation, whole.operation_metrics, whole.tags) == ("MERGE", {"a": 1}, {"a": "1"})
