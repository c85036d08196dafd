"""What the schema itself refuses, whatever the code above it does."""

from uuid import UUID

import psycopg
import pytest
from psycopg import errors

from tests.builders.by_x import add
from tests.service.commit.committing import append, create, land, new_table, ratified
from tidegate_service.core.errors import ServiceError
from tidegate_service.index.postgres.connections import driver_of
from tidegate_service.index.rows.effects import effects_of
from tidegate_service.index.writing.writes import Staged, write

pytestmark = pytest.mark.anyio


@pytest.fixture
async def plain(index):
    """A plain table at version 2 with one file."""
    table = await create(index, add("a"))
    for _ in range(2):
        table = await land(index, table)
    return table


@pytest.fixture
async def managed(index):
    """A catalog-managed table at version 1; version 0 is published."""
    table = await create(index, table=new_table(catalog_managed=True))
    table = await land(index, table)
    await index.mark_published(table.id, 0, 0)
    return table


def change(url: str, statement: str, table) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(statement, {"id": table.id})


COPY_OF_COMMIT = """
    INSERT INTO commits SELECT (jsonb_populate_record(c, %(changes)s)).* FROM commits c
    WHERE table_id = %(id)s AND version = 2
"""


@pytest.mark.parametrize(
    ("changes", "constraint"),
    [
        ('{"version": 2, "transaction_id": null}', "commits_pkey"),
        ('{"version": 3, "previous_version": 2}', "commits_transaction_id_key"),
        (
            '{"version": 3, "previous_version": 1, "transaction_id": null}',
            "commits_previous_version_check",
        ),
        (
            '{"version": 3, "previous_version": null, "transaction_id": null}',
            "commits_base_key",
        ),
        (
            '{"version": 4, "previous_version": 3, "transaction_id": null}',
            "commits_previous_version_fkey",
        ),
        (
            '{"version": -1, "previous_version": -2, "transaction_id": null}',
            "commits_version_check",
        ),
        (
            '{"version": 3, "previous_version": 2, "transaction_id": null, "published": false}',
            "commits_content_held_check",
        ),
    ],
)
async def test_a_commit_that_does_not_fit(database_url, plain, changes, constraint):
    with (
        psycopg.connect(database_url) as connection,
        pytest.raises(errors.IntegrityError) as refused,
    ):
        connection.execute(COPY_OF_COMMIT, {"id": plain.id, "changes": changes})
    assert refused.value.diag.constraint_name == constraint


async def test_the_fitting_commit_is_taken(database_url, plain):
    """What the cases above change is all that is wrong with them."""
    fitting = '{"version": 3, "previous_version": 2, "transaction_id": null}'
    with psycopg.connect(database_url) as connection:
        connection.execute(COPY_OF_COMMIT, {"id": plain.id, "changes": fitting})


@pytest.mark.parametrize(
    ("statement", "constraint"),
    [
        ("UPDATE tables SET published_version = 1", "tables_plain_published_check"),
        ("UPDATE tables SET state = 'quarantined'", "tables_state_reason_check"),
        ("UPDATE tables SET state = 'closed'", "tables_state_check"),
        ("UPDATE tables SET metadata = NULL", "tables_head_check"),
        ("UPDATE tables SET num_files = -1", "tables_num_files_check"),
        ("UPDATE tables SET first_version = 3", "tables_first_version_check"),
        ("UPDATE tables SET first_version = -1", "tables_first_version_check"),
        ("UPDATE commits SET previous_version = NULL WHERE version = 1", "commits_base_key"),
        (
            "UPDATE commits SET previous_version = -1 WHERE version = 0",
            "commits_previous_version_fkey",
        ),
        ("UPDATE commits SET content = NULL WHERE version = 0", "commits_content_check"),
        ("UPDATE files SET removed_version = 0", "files_removed_version_check"),
        ("INSERT INTO files SELECT * FROM files", "files_key"),
        ("DELETE FROM commits WHERE version = 1", "commits_previous_version_fkey"),
        ("DELETE FROM commits WHERE version = 0", None),
        ("DELETE FROM tables", None),
    ],
)
async def test_a_change_that_breaks_a_promise(database_url, plain, statement, constraint):
    with pytest.raises(errors.IntegrityError) as refused:
        change(database_url, statement, plain)
    if constraint is not None:
        assert refused.value.diag.constraint_name == constraint


async def test_nothing_is_published_that_is_not_ratified(database_url, managed):
    with pytest.raises(errors.CheckViolation) as refused:
        change(database_url, "UPDATE tables SET published_version = 2", managed)
    assert refused.value.diag.constraint_name == "tables_published_version_check"


async def test_unpublished_content_cannot_be_given_up(index, database_url, managed):
    await index.forget_content(managed.id, through=1)
    assert await index.content(managed.id, 0) is None
    with pytest.raises(errors.CheckViolation):
        change(database_url, "UPDATE commits SET content_held = false WHERE version = 1", managed)
    for forgotten in ("content = NULL", "content = NULL, content_sha256 = NULL"):
        with pytest.raises(errors.CheckViolation) as refused:
            change(database_url, f"UPDATE commits SET {forgotten}", managed)
        assert refused.value.diag.constraint_name == "commits_content_check"


async def test_the_head_moves_from_the_version_before_only(index, engine, database_url, plain):
    change(database_url, "UPDATE tables SET latest_version = 1, published_version = 1", plain)
    commit = ratified(3)
    effects = effects_of(commit.actions)
    staged = Staged(table_id=UUID(plain.id), before=plain, commit=commit, effects=effects)
    async with engine.connect() as connection:
        with pytest.raises(ServiceError, match="is not before version 3 any more"):
            await write(await driver_of(connection), [staged])


async def test_a_fence_is_a_defect_and_not_an_outage(index, database_url, plain):
    change(database_url, "UPDATE tables SET latest_version = 1, published_version = 1", plain)
    async with index.commit_section(plain.id) as section:
        with pytest.raises(ServiceError, match="commits_pkey") as refused:
            await append(section)
    assert type(refused.value) is ServiceError
